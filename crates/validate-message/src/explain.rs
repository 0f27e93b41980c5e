//! The pages of the codes: the meaning, an example that yields the code, and a corrected example. Each is a scenario
//! under `codes`, compiled in; the tests run it, so that a page cannot claim what the rules do not do. `settled
//! simulate` reads and plays scenarios; this module only cuts a page into its parts.

use message_schema::Code;
use message_schema::Finder;
use serde::Serialize;

macro_rules! pages {
    ($($variant:ident = $word:literal,)+) => {
        /// Returns the page of a code; a code without one does not compile.
        fn page(code: Code) -> &'static str {
            match code { $(Code::$variant => include_str!(concat!("../codes/", $word, ".yaml")),)+ }
        }
    };
}

pages! {
    NotAFile = "not_a_file",
    TooLarge = "too_large",
    Empty = "empty",
    NotUtf8 = "not_utf8",
    NulByte = "nul_byte",
    YamlSyntax = "yaml_syntax",
    YamlFeature = "yaml_feature",
    DuplicateKey = "duplicate_key",
    SeveralDocuments = "several_documents",
    TooDeep = "too_deep",
    NotAMapping = "not_a_mapping",
    EnvelopeFieldMissing = "envelope_field_missing",
    EnvelopeFieldInvalid = "envelope_field_invalid",
    EnvelopeFieldUnknown = "envelope_field_unknown",
    BodySyntax = "body_syntax",
    BodyFieldMissing = "body_field_missing",
    BodyFieldInvalid = "body_field_invalid",
    BodyFieldUnknown = "body_field_unknown",
    NitInvalid = "nit_invalid",
    PrMismatch = "pr_mismatch",
    PacketMissing = "packet_missing",
    PacketUnchecked = "packet_unchecked",
    PacketUnsafe = "packet_unsafe",
    PacketSyntax = "packet_syntax",
    PacketFieldInvalid = "packet_field_invalid",
    PacketFieldUnknown = "packet_field_unknown",
    PacketMismatch = "packet_mismatch",
    FindingInvalid = "finding_invalid",
    BlockingCountMismatch = "blocking_count_mismatch",
    TextDoubtful = "text_doubtful",
    ActionUnknown = "action_unknown",
    ActionMultiple = "action_multiple",
    SenderMismatch = "sender_mismatch",
    UnknownRecipient = "unknown_recipient",
    NotForTheDaemon = "not_for_the_daemon",
    Duplicate = "duplicate",
    IdCollision = "id_collision",
    Expired = "expired",
    WrongOwner = "wrong_owner",
    TooManyMessages = "too_many_messages",
    TooManyWaiting = "too_many_waiting",
    BacklogFull = "backlog_full",
    RateLimited = "rate_limited",
    WrongDirection = "wrong_direction",
    ReviewAmbiguous = "review_ambiguous",
    NoOpenRequest = "no_open_request",
    DuplicateTerminalResponse = "duplicate_terminal_response",
    InvocationClosed = "invocation_closed",
    NotYourTurn = "not_your_turn",
    RequestMismatch = "request_mismatch",
    RoundMismatch = "round_mismatch",
    AddressedRequired = "addressed_required",
    RequestAlreadyOpen = "request_already_open",
    SupersedesUnknown = "supersedes_unknown",
    RoundLimitExceeded = "round_limit_exceeded",
    AlreadyApproved = "already_approved",
    IterationLimitExceeded = "iteration_limit_exceeded",
    ReviewClosed = "review_closed",
    TurnBudgetExceeded = "turn_budget_exceeded",
    ProviderUnavailable = "provider_unavailable",
    QualityGateViolation = "quality_gate_violation",
    ApprovalWithoutEvidence = "approval_without_evidence",
    HeadMismatch = "head_mismatch",
    ActionMissing = "action_missing",
    ThreadUnknown = "thread_unknown",
    ThreadNotOpen = "thread_not_open",
    ActionIllegal = "action_illegal",
    DuplicateFinding = "duplicate_finding",
    TooManyFindings = "too_many_findings",
    FeedbackEmpty = "feedback_empty",
    FindingIdReused = "finding_id_reused",
    DecisionInvalid = "decision_invalid",
    ReopenLimitExceeded = "reopen_limit_exceeded",
    InvalidTransition = "invalid_transition",
    ConfigInvalid = "config_invalid",
}

/// The page of one code. Later versions add fields and never change one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The version of this format: 1.
    pub schema_version: u32,
    /// The code.
    pub code: Code,
    /// Its meaning, in one sentence.
    pub sentence: &'static str,
    /// The finder: `file` (`validate-message` finds it too) or `daemon`.
    pub finder: &'static str,
    /// True if a refused message can succeed once it is corrected, without any other change.
    pub retryable: bool,
    /// Its causes and what to do, in a few lines.
    pub explanation: String,
    /// Steps of a scenario that come before, as YAML; empty if none are needed.
    pub scene: String,
    /// Steps that yield it, as YAML.
    pub failing: String,
    /// Steps that replace them and are accepted, as YAML.
    pub fixed: String,
}

/// Explains a code.
pub fn explain(code: Code) -> Explained {
    let page = page(code);
    Explained {
        schema_version: 1,
        code,
        sentence: code.sentence(),
        finder: match code.finder() {
            Finder::Validator => "file",
            Finder::Daemon => "daemon",
        },
        retryable: code.is_retryable(),
        explanation: explanation(page),
        scene: part(page, STEPS, FAILING),
        failing: part(page, FAILING, FIXED),
        fixed: part(page, FIXED, ""),
    }
}

/// Returns the code of this name, or else the nearest known one, if one is near.
pub fn find(word: &str) -> Result<Code, Option<Code>> {
    let named = |word: &str| Code::ALL.iter().copied().find(|code| code.as_str() == word);
    let near = || crate::suggest::nearest(word, Code::ALL.iter().map(|code| code.as_str()));
    named(word).ok_or_else(|| near().and_then(named))
}

/// The key above all steps.
const STEPS: &str = "steps:\n";

/// The comment above the steps that yield the code.
const FAILING: &str = "  # failing\n";

/// The comment above the steps that are accepted.
const FIXED: &str = "  # fixed\n";

/// The indentation of a scenario's steps.
const STEP: &str = "  ";

/// Returns the comment at the top of a page.
fn explanation(page: &str) -> String {
    let lines = page.lines().map_while(|line| line.strip_prefix('#'));
    lines.map(|line| line.trim().to_owned() + "\n").collect()
}

/// Returns the unindented steps between two comments; those after the first, if `end` is empty.
fn part(page: &str, begin: &str, end: &str) -> String {
    let behind = page.split_once(begin).map_or("", |(_, behind)| behind);
    let part = match end {
        "" => behind,
        end => behind.split_once(end).map_or("", |(part, _)| part),
    };
    let lines = part
        .trim_end()
        .lines()
        .map(|line| line.strip_prefix(STEP).unwrap_or(line));
    lines.map(|line| line.to_owned() + "\n").collect()
}

impl Explained {
    /// Returns the page for a person.
    pub fn text(&self) -> String {
        let Self {
            code,
            sentence,
            explanation,
            scene,
            failing,
            fixed,
            ..
        } = self;
        let found = match code.finder() {
            Finder::Validator => "validate-message and the daemon, from the file and its packet",
            Finder::Daemon => "the daemon, which knows the review and the workspace",
        };
        let scene = if scene.is_empty() {
            String::new()
        } else {
            format!("# before\n{scene}\n")
        };
        format!(
            "{code}: {sentence}\n\
             found by: {found}\n\
             resend: {}\n\n\
             {explanation}\n\
             {scene}{}\n{failing}\n\
             {}\n{fixed}\n\
             play it: settled simulate crates/validate-message/codes/{code}.yaml\n",
            self.again(),
            FAILING.trim(),
            FIXED.trim(),
        )
    }

    fn again(&self) -> &'static str {
        let refuses_nothing = matches!(
            self.code,
            Code::Duplicate
                | Code::BodyFieldUnknown
                | Code::PacketFieldUnknown
                | Code::TextDoubtful
        );
        match (refuses_nothing, self.retryable) {
            (true, _) => "not needed; nothing was refused",
            (false, true) => "yes, once corrected",
            (false, false) => "no; something else must change first",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_cut_where_its_comments_stand() {
        let page = "# One line.\n#\n# Another.\ntitle: x\nsteps:\n  - a: 1\n\n  # failing\n  - b:\n      c: 2\n\n  # fixed\n  - d: 3\n";
        assert_eq!(explanation(page), "One line.\n\nAnother.\n");
        assert_eq!(part(page, STEPS, FAILING), "- a: 1\n");
        assert_eq!(part(page, FAILING, FIXED), "- b:\n    c: 2\n");
        assert_eq!(part(page, FIXED, ""), "- d: 3\n");
    }

    #[test]
    fn a_page_says_whether_to_send_again() {
        for (code, again) in [
            (Code::Duplicate, "not needed; nothing was refused"),
            (Code::TextDoubtful, "not needed; nothing was refused"),
            (Code::YamlSyntax, "yes, once corrected"),
            (Code::ReviewClosed, "no; something else must change first"),
        ] {
            let text = explain(code).text();
            assert!(
                text.starts_with(&format!("{code}: {}\n", code.sentence())),
                "{text}"
            );
            assert!(text.contains(&format!("\nresend: {again}\n\n")), "{text}");
        }
    }

    #[test]
    fn a_slip_leads_to_the_code_that_was_meant() {
        assert_eq!(find("action_missing"), Ok(Code::ActionMissing));
        assert_eq!(find("acton_mising"), Err(Some(Code::ActionMissing)));
        assert_eq!(find("colour"), Err(None));
    }
}
