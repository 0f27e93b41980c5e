//! The options for the content of a message: the fields of its envelope and of the four bodies of the review loop. An
//! option is written under its own name, and the validator decides which values are right.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use mailbox::compose::draft::{MessageDraft, PacketGiven};
use mailbox::compose::message::Fields;
use message_schema::envelope::{MessageType, Priority, ReviewKind};
use message_schema::id::{AgentName, PrNumber};
use serde::Serialize;
use serde_json::Value;
use workspace::directory::agent_name;

use super::failure::Failure;
use super::input;

/// The headings of the options in the help.
pub(super) const REQUEST: &str = "review_request";
pub(super) const ADDRESSED: &str = "review_addressed";
pub(super) const RESPONSE: &str = "review_feedback, review_lgtm and shared fields";
pub(super) const COST: &str = "Cost (feedback, lgtm, addressed)";
/// The heading of fields that Settled delivers unchanged, or that only other protocols know.
pub(super) const CARRIED: &str = "Carried along";

/// The fields of every message.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Every message")]
pub(super) struct EnvelopeArgs {
    /// The recipient, or several separated by commas; optional if the pull request has one open review
    #[arg(long, value_name = "AGENTS", value_delimiter = ',', value_parser = agent_name)]
    pub(super) to: Vec<AgentName>,
    /// The number of the pull request
    #[arg(long, value_name = "NUMBER", alias = "related-pr")]
    pub(super) pr: Option<PrNumber>,
    /// A file with the body, or with the summary of a request or a review_addressed; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    pub(super) body_file: Option<PathBuf>,
    /// The same, as an argument
    #[arg(long, value_name = "TEXT")]
    pub(super) body: Option<String>,
    /// The subject, one line [default: from the type and the pull request]
    #[arg(long, value_name = "LINE")]
    pub(super) subject: Option<String>,
    /// P0 to P3 [default: P2]
    #[arg(long, value_name = "P", value_parser = priority)]
    pub(super) priority: Option<Priority>,
    /// The message this one answers
    #[arg(long, value_name = "ID", alias = "parent")]
    pub(super) parent_message_id: Option<String>,
    /// The conversation it belongs to, as `conv-20260213-name-1`
    #[arg(long, value_name = "ID", alias = "conversation")]
    pub(super) conversation_id: Option<String>,
    /// A packet other than findings
    #[arg(long, value_name = "PATH", help_heading = CARRIED)]
    related_packet: Option<String>,
    /// The time after which the daemon refuses the message, as 2026-02-13T10:00:00Z
    #[arg(long, value_name = "INSTANT")]
    expires_at: Option<String>,
    /// A label, delivered unchanged
    #[arg(long, value_name = "LABEL", help_heading = CARRIED)]
    channel: Option<String>,
    /// Text for context stores, delivered unchanged
    #[arg(long, value_name = "TEXT", help_heading = CARRIED)]
    context_keys: Option<String>,
    /// OACP's `auto_proceed`, delivered unchanged
    #[arg(long, value_name = "TEXT", help_heading = CARRIED)]
    autonomy_hint: Option<String>,
    /// OACP's signature trailer, delivered unchanged
    #[arg(long, value_name = "TEXT", help_heading = CARRIED)]
    auth: Option<String>,
}

/// The cost of a response.
#[derive(Clone, Debug, Default, clap::Args, Serialize)]
#[command(next_help_heading = COST)]
pub(super) struct Telemetry {
    /// The model that wrote the message
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Turns used
    #[arg(long, value_name = "N")]
    pub(super) turns: Option<u64>,
    /// Input tokens
    #[arg(long, value_name = "N")]
    input_tokens: Option<u64>,
    /// Output tokens
    #[arg(long, value_name = "N")]
    output_tokens: Option<u64>,
    /// Seconds of wall time
    #[arg(long, value_name = "SECONDS")]
    wall_time_s: Option<f64>,
    /// Estimated cost in US dollars
    #[arg(long, value_name = "DOLLARS")]
    est_cost_usd: Option<f64>,
}

/// The fields of a `review_request`.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = REQUEST)]
pub(super) struct Request {
    /// The branch under review
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// A summary of the change; use --body-file for a long one
    #[arg(long, value_name = "TEXT")]
    diff_summary: Option<String>,
    /// The commit to review [default: the branch's head, in a git repository]
    #[arg(long, value_name = "SHA", alias = "head")]
    declared_head: Option<String>,
    /// The base commit, or in a git repository the branch to merge into [default: origin's, main or master]
    #[arg(long, value_name = "SHA", alias = "base")]
    base_sha: Option<String>,
    /// The git repository to diff in
    #[serde(skip)]
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo_dir: PathBuf,
    /// The repository, if the workspace serves several
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Turns the reviewer may take, 1 to 1000
    #[arg(long, value_name = "N")]
    max_turns_reviewer: Option<u64>,
    /// Seconds the reviewer may run, 1 to 86400
    #[arg(long, value_name = "N")]
    max_runtime_s_reviewer: Option<u64>,
    /// Rounds to request, 1 to 3
    #[arg(long, value_name = "N")]
    max_rounds: Option<u64>,
    /// A command an lgtm must record as passing; repeatable
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[arg(long, value_name = "COMMAND", alias = "validation-command")]
    validation_commands: Vec<String>,
    /// An external action the author expects; repeatable
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[arg(long, value_name = "TEXT", alias = "side-effect")]
    side_effects: Vec<String>,
    /// `review` or `verify`
    #[arg(long, value_name = "WORD")]
    run_trigger: Option<String>,
    /// The handed-off task this pull request fixes
    #[arg(long, value_name = "TASK")]
    handoff_ref: Option<String>,
    /// The open request this one replaces
    #[arg(long, value_name = "ID", alias = "supersedes")]
    supersedes_message_id: Option<String>,
    /// The reason for the replacement
    #[arg(long, value_name = "TEXT")]
    supersede_reason: Option<String>,
}

/// The fields of a `review_addressed`.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = ADDRESSED)]
pub(super) struct Addressed {
    /// The commit with the fixes
    #[arg(long, value_name = "SHA", alias = "commit")]
    commit_sha: Option<String>,
    /// A summary of the fixes; use --body-file for a long one
    #[arg(long, value_name = "TEXT")]
    changes_summary: Option<String>,
    /// A file changed by the fixes; repeatable
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[arg(long, value_name = "PATH", alias = "touched-file", num_args = 1..)]
    touched_files: Vec<String>,
    /// An addressed finding; repeatable [default: all]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[arg(long, value_name = "ID", alias = "addressed-finding-id", num_args = 1..)]
    addressed_finding_ids: Vec<String>,
}

/// The fields of a `review_feedback` and a `review_lgtm`, and the fields that several types share.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = RESPONSE)]
pub(super) struct ResponseArgs {
    /// The findings packet; a file outside the workspace is copied into it
    #[serde(skip)]
    #[arg(long, value_name = "FILE", alias = "packet")]
    findings_packet: Option<PathBuf>,
    /// The round [default: the review's]
    #[arg(long, value_name = "N")]
    round: Option<u64>,
    /// The number of blocking findings [default: counted in the packet]
    #[arg(long, value_name = "N")]
    blocking_count: Option<u64>,
    /// The reason to escalate to a person
    #[arg(long, value_name = "TEXT")]
    escalation: Option<String>,
    /// `pass` or `fail` [default: pass]
    #[arg(long, value_name = "WORD")]
    quality_gate_result: Option<String>,
    /// True if the pull request may be merged now [default: true]
    #[arg(long, value_name = "BOOL")]
    merge_ready: Option<bool>,
    /// A file with a list of nits; `-` is standard input
    #[serde(skip)]
    #[arg(long, value_name = "FILE")]
    nits: Option<PathBuf>,
    /// The reviewed commit, or the commit with the fixes
    #[arg(long, value_name = "SHA")]
    validated_head: Option<String>,
    /// A note from a person, recorded but without effect; text or JSON
    #[arg(long, value_name = "TEXT", value_parser = free)]
    human_direction: Option<Value>,
    /// External actions left undone; text or JSON
    #[arg(long, value_name = "TEXT", value_parser = free)]
    withheld_side_effects: Option<Value>,
    /// OACP's older list of nits; text or JSON
    #[arg(long, value_name = "TEXT", value_parser = free)]
    follow_ups: Option<Value>,
    /// More fields about the cost; JSON
    #[arg(long, value_name = "JSON", value_parser = free)]
    telemetry: Option<Value>,
}

impl EnvelopeArgs {
    /// The draft without the fields of a body.
    pub(super) fn draft(&self, kind: MessageType) -> Result<MessageDraft, Failure> {
        let mut envelope = Fields::default();
        envelope.put_given("related_packet", self.related_packet.clone());
        envelope.put_given("conversation_id", self.conversation_id.clone());
        envelope.put_given("parent_message_id", self.parent_message_id.clone());
        envelope.put_given("context_keys", self.context_keys.clone());
        envelope.put_given("expires_at", self.expires_at.clone());
        envelope.put_given("channel", self.channel.clone());
        envelope.put_given("autonomy_hint", self.autonomy_hint.clone());
        let file = self.body_file.as_deref().map(input::text).transpose()?;
        Ok(MessageDraft {
            to: self.to.clone(),
            pr: self.pr.clone(),
            priority: self.priority,
            subject: self.subject.clone(),
            envelope,
            text: file.or_else(|| self.body.clone()),
            auth: self.auth.clone(),
            ..MessageDraft::new(kind)
        })
    }
}

impl Telemetry {
    /// Adds the given values to the envelope.
    pub(super) fn add(&self, draft: &mut MessageDraft) {
        draft.envelope.put_all(self);
    }
}

impl Request {
    pub(super) fn add(&self, draft: &mut MessageDraft) {
        draft.repository = Some(self.repo_dir.clone());
        draft.body.put_all(self);
        // `--head` is the commit that a message is about; each type has its own name for that field.
        if draft.kind != MessageType::Review(ReviewKind::Request) {
            draft.body.rename("declared_head", "validated_head");
        }
    }
}

impl Addressed {
    pub(super) fn add(&self, draft: &mut MessageDraft) {
        draft.body.put_all(self);
    }
}

impl ResponseArgs {
    /// The packet, if one is given.
    pub(super) fn packet(&self) -> Option<&Path> {
        self.findings_packet.as_deref()
    }

    pub(super) fn add(&self, draft: &mut MessageDraft) -> Result<(), Failure> {
        if let Some(path) = &self.findings_packet {
            draft.packet = PacketGiven::Path(path.clone());
        }
        draft.body.put_all(self);
        if let Some(path) = &self.nits {
            draft.body.put("nits", input::nits(path)?);
        }
        Ok(())
    }
}

/// A value of any type: JSON if it is a list or a mapping, otherwise the text.
fn free(text: &str) -> Result<Value, Infallible> {
    let json = serde_json::from_str::<Value>(text)
        .ok()
        .filter(|json| json.is_array() || json.is_object());
    Ok(json.unwrap_or_else(|| text.into()))
}

pub(super) fn priority(text: &str) -> Result<Priority, String> {
    Priority::from_word(text).ok_or_else(|| "expected P0, P1, P2 or P3".to_owned())
}
