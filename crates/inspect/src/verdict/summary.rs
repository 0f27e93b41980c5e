//! The evidence in a verdict: the parts of the change that the reviewer read, as the approval keeps them, and the tests
//! that the change edits.

use message_schema::id::RepoPath;
use message_schema::line::escaped;
use review::{ApprovalEvidence, Phase, Review, edited_tests};
use serde::{Deserialize, Serialize};

/// The most files that a line names.
const NAMED_MAX: usize = 5;

/// The evidence of one review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceSummary {
    /// The changed files that are tests.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub edits_tests: Vec<RepoPath>,
    /// The evidence that the approval keeps; `None` if the review is not approved by a response.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub evidence: Option<ApprovalEvidence>,
}

impl EvidenceSummary {
    pub(super) fn of(review: &Review) -> Self {
        let evidence = if let Phase::Approved(approval) = &review.phase {
            approval.evidence.as_deref().cloned()
        } else {
            None
        };
        let tests = edited_tests(&review.reading.change.files);
        Self {
            edits_tests: tests.into_iter().cloned().collect(),
            evidence,
        }
    }

    /// Describes the evidence to people, one item per line.
    pub fn lines(&self) -> Vec<String> {
        let evidence = self.evidence.as_ref().map(describe);
        let tests = (!self.edits_tests.is_empty())
            .then(|| format!("edits_tests: {}", named(&self.edits_tests)));
        evidence.into_iter().chain(tests).collect()
    }
}

fn describe(evidence: &ApprovalEvidence) -> String {
    let ApprovalEvidence {
        digest_matches,
        declared,
        served,
        observed,
        missing,
        commands_declared,
        commands_observed,
    } = evidence;
    let mut said = vec![format!(
        "evidence: files {declared} declared, {served} served, {observed} observed"
    )];
    if !missing.is_empty() {
        said.push(format!("not examined: {}", named(missing)));
    }
    if !digest_matches {
        said.push("no diff_digest that matches the request".to_owned());
    }
    let (only_said, seen) = (commands_declared.len(), commands_observed.len());
    if only_said + seen > 0 {
        said.push(format!("commands {only_said} declared, {seen} observed"));
    }
    said.join("; ")
}

fn named(files: &[RepoPath]) -> String {
    let names: Vec<String> = files
        .iter()
        .take(NAMED_MAX)
        .map(|file| escaped(file.as_str()))
        .collect();
    match files.len().saturating_sub(NAMED_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
