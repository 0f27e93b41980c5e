//! The codes: one namespace for every refusal and warning of the reader, the validator and the
//! daemon. A code never changes its meaning.

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $who:ident, $sentence:literal;)+) => {
        /// The reason for a refusal or a warning. The text form is stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $(#[doc = $sentence] $variant),+ }

        impl Code {
            /// Every code, in the order of the protocol.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The code as reports print it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The meaning of the code, in one sentence.
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence),+ }
            }

            /// Returns the program that can find it.
            pub fn finder(self) -> Finder {
                match self { $(Self::$variant => Finder::$who),+ }
            }
        }
    };
}

/// The programs that can find a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finder {
    /// `validate-message`, from the file (and the packet it names) alone.
    Validator,
    /// Only the daemon, which knows the review and the workspace.
    Daemon,
}

codes! {
    NotAFile = "not_a_file", Daemon, "The entry in the outbox is not a regular file with one name.";
    TooLarge = "too_large", Validator, "The file is larger than 256 KiB, or has more than 10 000 keys and values.";
    Empty = "empty", Validator, "The file is empty.";
    NotUtf8 = "not_utf8", Validator, "The file is not UTF-8 text.";
    NulByte = "nul_byte", Validator, "The file contains a NUL character.";
    YamlSyntax = "yaml_syntax", Validator, "The file is not well-formed YAML.";
    YamlFeature = "yaml_feature", Validator, "The file uses an anchor, an alias, a tag, a directive or a non-text key, none of which a message may use.";
    DuplicateKey = "duplicate_key", Validator, "A mapping has the same key twice.";
    SeveralDocuments = "several_documents", Validator, "The file holds more than one YAML document.";
    TooDeep = "too_deep", Validator, "The file nests deeper than 32 levels.";
    NotAMapping = "not_a_mapping", Validator, "The document is not a mapping of fields.";

    EnvelopeFieldMissing = "envelope_field_missing", Validator, "A required envelope field is missing.";
    EnvelopeFieldInvalid = "envelope_field_invalid", Validator, "An envelope field breaks its rule.";
    EnvelopeFieldUnknown = "envelope_field_unknown", Validator, "The envelope has a field the protocol does not know.";
    BodySyntax = "body_syntax", Validator, "The body of a review message is not a YAML mapping.";
    BodyFieldMissing = "body_field_missing", Validator, "A required body field is missing.";
    BodyFieldInvalid = "body_field_invalid", Validator, "A body field breaks its rule.";
    BodyFieldUnknown = "body_field_unknown", Validator, "The body has a field the protocol does not know; it is delivered but has no effect (warning).";
    NitInvalid = "nit_invalid", Validator, "A nit of an approval breaks its rule.";
    PrMismatch = "pr_mismatch", Validator, "`related_pr` and the body's `pr` name different pull requests.";

    PacketMissing = "packet_missing", Validator, "The findings packet the message names does not exist.";
    PacketUnchecked = "packet_unchecked", Validator, "The findings packet was not looked up, so neither it nor the fields that must match it are checked (warning).";
    PacketUnsafe = "packet_unsafe", Validator, "The findings packet is not a regular file inside the workspace.";
    PacketSyntax = "packet_syntax", Validator, "The findings packet is not a readable YAML mapping.";
    PacketFieldInvalid = "packet_field_invalid", Validator, "A field of the packet's header is missing or breaks its rule.";
    PacketFieldUnknown = "packet_field_unknown", Validator, "The packet has a field the protocol does not know; it is delivered but has no effect (warning).";
    PacketMismatch = "packet_mismatch", Validator, "The packet and the message name different rounds.";
    FindingInvalid = "finding_invalid", Validator, "A finding of the packet breaks its rule.";
    BlockingCountMismatch = "blocking_count_mismatch", Validator, "`blocking_count` differs from the number of blocking findings in the packet.";
    TextDoubtful = "text_doubtful", Validator, "A required text is `null`, a comment cuts off a text, or an optional field is empty in a way that `oacp` refuses; the value is taken as written (warning).";
    ActionUnknown = "action_unknown", Validator, "A finding's action is not one of resolve, veto, escalate, reply.";
    ActionMultiple = "action_multiple", Validator, "A thread has more than one action.";

    SenderMismatch = "sender_mismatch", Daemon, "`from` does not name the owner of the outbox.";
    UnknownRecipient = "unknown_recipient", Daemon, "A recipient is not an agent of this workspace.";
    NotForTheDaemon = "not_for_the_daemon", Daemon, "The message is addressed to `settled`, which reads no mail.";
    Duplicate = "duplicate", Daemon, "The same bytes under the same id were accepted before; nothing happens, without a notice.";
    IdCollision = "id_collision", Daemon, "The id was accepted before with other bytes.";
    Expired = "expired", Daemon, "The message's `expires_at` has passed.";
    WrongOwner = "wrong_owner", Daemon, "A user other than the one `settled.toml` names for the agent owns the file or the packet it names.";
    TooManyMessages = "too_many_messages", Daemon, "This outbox sent too many files within an hour; only messages of open reviews are accepted.";
    TooManyWaiting = "too_many_waiting", Daemon, "256 messages of this outbox already wait for a packet, or behind one that does.";
    BacklogFull = "backlog_full", Daemon, "Too many reviews of this author are open with this reviewer.";
    RateLimited = "rate_limited", Daemon, "Too many messages of this kind between these two agents within an hour.";

    WrongDirection = "wrong_direction", Daemon, "The sender does not have the role in this review that the message type needs.";
    ReviewAmbiguous = "review_ambiguous", Daemon, "The message could belong to several open reviews.";
    NoOpenRequest = "no_open_request", Daemon, "No open review request matches this message.";
    DuplicateTerminalResponse = "duplicate_terminal_response", Daemon, "This invocation already has its one feedback or lgtm.";
    InvocationClosed = "invocation_closed", Daemon, "The daemon closed this invocation; it takes no more responses.";
    NotYourTurn = "not_your_turn", Daemon, "Another agent moves first; the refusal says which, and until when.";
    RequestMismatch = "request_mismatch", Daemon, "The response answers an earlier request than the open one.";
    RoundMismatch = "round_mismatch", Daemon, "The round in the message differs from the daemon's.";
    AddressedRequired = "addressed_required", Daemon, "Blocking findings are open: `review_addressed` comes before the next request.";
    RequestAlreadyOpen = "request_already_open", Daemon, "A request is already open and waits for the reviewer.";
    SupersedesUnknown = "supersedes_unknown", Daemon, "`supersedes_message_id` does not name the open request.";
    RoundLimitExceeded = "round_limit_exceeded", Daemon, "The generation has no rounds left.";
    AlreadyApproved = "already_approved", Daemon, "This very commit is already approved.";
    IterationLimitExceeded = "iteration_limit_exceeded", Daemon, "The pull request has used its five generations.";
    ReviewClosed = "review_closed", Daemon, "The review is over; only a person can reopen it.";

    TurnBudgetExceeded = "turn_budget_exceeded", Daemon, "An approval reports more turns than its request allows.";

    ProviderUnavailable = "provider_unavailable", Daemon, "A budget of tokens or money is used up; the agent's command is not started before the next day.";

    QualityGateViolation = "quality_gate_violation", Daemon, "The approval fails the quality gate.";
    HeadMismatch = "head_mismatch", Daemon, "The approval names a commit other than the round's head.";
    ApprovalWithoutEvidence = "approval_without_evidence", Daemon, "The approval does not show that its change was read.";
    ActionMissing = "action_missing", Daemon, "An open thread has no action.";
    ThreadUnknown = "thread_unknown", Daemon, "An action or `addressed_finding_ids` names a finding this review does not have.";
    ThreadNotOpen = "thread_not_open", Daemon, "An action names a thread that is not open.";
    ActionIllegal = "action_illegal", Daemon, "The action is not legal on this thread now.";
    DuplicateFinding = "duplicate_finding", Daemon, "A new finding repeats a known one: the same words in the same place, or the same title in the same file.";
    TooManyFindings = "too_many_findings", Daemon, "A response raises more than 25 new findings.";
    FeedbackEmpty = "feedback_empty", Daemon, "A feedback raises no finding, keeps no thread open and escalates none to a person.";
    FindingIdReused = "finding_id_reused", Daemon, "A known finding id names another problem.";

    DecisionInvalid = "decision_invalid", Daemon, "A person's decision does not fit the state of the review or the thread.";
    ReopenLimitExceeded = "reopen_limit_exceeded", Daemon, "People have given this pull request back to the agents three times within 24 hours.";
    InvalidTransition = "invalid_transition", Daemon, "A run cannot go from its state to that one.";
    ConfigInvalid = "config_invalid", Daemon, "A key of `settled.toml` is unknown or its value is out of range.";
}

impl Code {
    /// True if a message refused with this code can succeed once it is corrected, without any other
    /// change. False for codes that refuse nothing: a duplicate, a warning.
    pub fn is_retryable(self) -> bool {
        !matches!(
            self,
            Self::Duplicate
                | Self::BodyFieldUnknown
                | Self::PacketFieldUnknown
                | Self::PacketUnchecked
                | Self::TextDoubtful
                | Self::ReopenLimitExceeded
                | Self::DuplicateTerminalResponse
                | Self::InvocationClosed
                | Self::RoundLimitExceeded
                | Self::IterationLimitExceeded
                | Self::ReviewClosed
                | Self::TurnBudgetExceeded
                | Self::NotForTheDaemon
                | Self::WrongDirection
                | Self::NotYourTurn
        )
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.as_str() == word)
            .ok_or_else(|| serde::de::Error::custom(format!("unknown code `{word}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_codes_share_a_word() {
        let words: std::collections::BTreeSet<_> =
            Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(words.len(), Code::ALL.len());
    }
}
