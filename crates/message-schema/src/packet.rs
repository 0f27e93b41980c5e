//! The findings packet: a reviewer's findings, in a file that a message points to.

use serde::{Deserialize, Serialize};

use crate::body::Examined;
use crate::envelope::{Timestamp, words};
use crate::id::{CommitSha, FindingId, RepoPath};

/// The findings of one round. Unknown fields pass unread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindingsPacket {
    /// A name for the packet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub packet_id: Option<String>,
    /// The review packet it answers, as OACP writes it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source_review_packet: Option<String>,
    /// The reviewer who found it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reviewer: Option<String>,
    /// The round, which must be the message's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub round: Option<u32>,
    /// The time of writing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub created_at_utc: Option<Timestamp>,
    /// The commit that was reviewed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reviewed_sha: Option<CommitSha>,
    /// The reviewer's own summary.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub summary: Option<Summary>,
    /// The findings, ids unique.
    pub findings: Vec<Finding>,
    /// The commands run to check the change.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub qa_validation: Option<QaValidation>,
    /// The files of the change that the reviewer has read; added to the message's own lists.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub examined: Option<Examined>,
}

/// The files that a change touches, if they are too many for the body of a request. Unknown fields pass unread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesPacket {
    /// The files, each once.
    pub changed_files: Vec<RepoPath>,
}

/// The reviewer's own counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The verdict in the reviewer's words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub verdict: Option<String>,
    /// The number of findings that block.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub blocking_count: Option<u32>,
    /// The number of findings that do not block.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub non_blocking_count: Option<u32>,
}

/// The commands run to check the change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QaValidation {
    /// Each command with its result, in order; the last result of a command counts.
    #[serde(default)]
    pub commands_run: Vec<CommandRun>,
}

/// One command and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandRun {
    /// The command line.
    pub command: String,
    /// Its result.
    pub result: CommandResult,
    /// Additional notes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub notes: Option<String>,
}

words!(
    /// The result of a validation command.
    CommandResult {
        /// Passed.
        Pass = "pass",
        /// Failed.
        Fail = "fail",
        /// Passed with warnings: good enough unless the command is required.
        Warn = "warn",
    }
);

/// One finding as the reviewer wrote it; opens a thread, or acts on one that is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Unique in the packet; it names the thread for the life of the review.
    pub id: FindingId,
    /// Its severity.
    pub severity: Severity,
    /// Its status when the packet is written.
    pub status: Status,
    /// True if it blocks; required for P2, where the reviewer chooses.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub blocking: Option<bool>,
    /// A one-line title.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub title: Option<String>,
    /// The part of the system.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub area: Option<String>,
    /// The kind of problem; routes handoffs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub category: Option<String>,
    /// The file it is in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<RepoPath>,
    /// The line it is at, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u32>,
    /// The lines it covers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lines: Option<LineRange>,
    /// The steps to reproduce it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repro: Option<String>,
    /// The expected behaviour.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expected: Option<String>,
    /// The observation that shows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub evidence: Option<String>,
    /// The recommended fix.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recommendation: Option<String>,
    /// A stable mark that identifies the problem across rounds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fingerprint: Option<String>,
    /// The commit or fix that introduced it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub introduced_by: Option<String>,
    /// The thread that is about the same problem.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub same_as: Option<FindingId>,
    /// The agent to which it is handed off.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    /// The reviewer's current stance on the thread.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stance: Option<Stance>,
    /// The reviewer's action on the open thread.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub action: Option<Action>,
}

impl Finding {
    /// True if the finding blocks, by its severity and, for P2, by its own `blocking`.
    pub fn blocks(&self) -> bool {
        match self.severity {
            Severity::P0 | Severity::P1 => true,
            Severity::P2 => self.blocking.unwrap_or(false),
            Severity::P3 => false,
        }
    }

    /// True if the packet counts it as a finding that still blocks: it blocks, its status does not settle it, and its
    /// action is not `resolve`. Veto, escalate and reply count.
    pub fn counts_as_blocking(&self) -> bool {
        self.blocks() && !self.status.is_settled() && self.action != Some(Action::Resolve)
    }
}

words!(
    /// The severity of a finding.
    Severity {
        /// Security, data loss, a crash in production: always blocks.
        P0 = "P0",
        /// A bug in promised behaviour: blocks.
        P1 = "P1",
        /// The reviewer's judgement: blocks if the reviewer says so.
        P2 = "P2",
        /// A nit: never blocks.
        P3 = "P3",
    }
);

words!(
    /// The status of a finding when the packet is written.
    Status {
        /// Not addressed.
        Open = "open",
        /// Addressed.
        Fixed = "fixed",
        /// The same as fixed.
        Resolved = "resolved",
        /// Left unfixed on purpose.
        WontFix = "wont_fix",
        /// Reported as fixed, but is not.
        NotFixed = "not_fixed",
        /// Cannot be judged yet.
        NeedsClarification = "needs_clarification",
    }
);

impl Status {
    /// True if the author has nothing more to do.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Fixed | Self::Resolved | Self::WontFix)
    }
}

words!(
    /// The reviewer's wish on a thread (`docs/protocol.md`, "Threads").
    Stance {
        /// The author should change something.
        SeeksChange = "seeks_change",
        /// Nothing needs to change.
        Accepts = "accepts",
    }
);

words!(
    /// The four actions on an open thread (`docs/protocol.md`, "Threads").
    Action {
        /// Fixed: closes the thread.
        Resolve = "resolve",
        /// Not fixed, and no further discussion: a person decides.
        Veto = "veto",
        /// Worse than thought: a person decides.
        Escalate = "escalate",
        /// One more exchange.
        Reply = "reply",
    }
);

/// Lines of a file, first to last inclusive, from 1; written `40-45` or `40`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LineRange {
    first: u32,
    last: u32,
}

impl LineRange {
    /// The accepted values, in words for people.
    pub const EXPECTED: &str = "lines written 40 or 40-45, from 1";

    /// Reads `40-45` or `40`; `None` for any other text, line 0 and ranges that run backwards.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |t: &str| {
            let digits = (1..=10).contains(&t.len()) && t.bytes().all(|b| b.is_ascii_digit());
            if digits { t.parse::<u32>().ok() } else { None }
        };
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (
                number(first.trim_end_matches(' '))?,
                number(last.trim_start_matches(' '))?,
            ),
            None => (number(text)?, number(text)?),
        };
        (first >= 1 && first <= last).then_some(Self { first, last })
    }

    /// Returns the range of one line.
    pub fn line(line: u32) -> Self {
        Self {
            first: line,
            last: line,
        }
    }

    /// Returns the first line.
    pub fn first(self) -> u32 {
        self.first
    }

    /// Returns the last line.
    pub fn last(self) -> u32 {
        self.last
    }
}

impl TryFrom<String> for LineRange {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("expected {}", Self::EXPECTED))
    }
}

impl From<LineRange> for String {
    fn from(range: LineRange) -> Self {
        if range.first == range.last {
            range.first.to_string()
        } else {
            format!("{}-{}", range.first, range.last)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ranges_run_forward_from_one() {
        let range = LineRange::parse("40-45").expect("a range");
        assert_eq!((range.first(), range.last()), (40, 45));
        assert_eq!(LineRange::parse("7"), Some(LineRange::line(7)));
        for bad in ["0", "45-40", "a", "", "1-", "+1", "1-2-3"] {
            assert_eq!(LineRange::parse(bad), None, "{bad:?} was admitted");
        }
    }
}
