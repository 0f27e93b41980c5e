//! A task for a fixing agent: the `handoff` message in words, its packet as data. Each is complete, so that either is
//! enough.

use message_schema::body::Body;
use message_schema::envelope::{DAEMON, MessageType, Priority, TextKind, Timestamp};
use message_schema::id::{AgentName, FindingId, PrNumber, Repo, RepoPath};
use message_schema::line::counted;
use message_schema::packet::{LineRange, Severity};
use message_schema::render_document;
use review::{Hold, ReviewKey, Task, TaskFinding, TaskId, ThreadState};
use serde::Serialize;

use super::{NoticeContent, NoticeHead, fitted, one_line, write};

/// The length of a title in a line of the message, in characters.
const TITLE_CHARS: usize = 200;

/// A packet in `packets/handoff/`: the fields of OACP, and the findings.
#[derive(Debug, Serialize)]
struct HandoffPacket<'a> {
    schema_version: u8,
    task_id: &'a TaskId,
    source_agent: &'static str,
    target_agent: &'a AgentName,
    created_at_utc: Timestamp,
    intent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    repo: Option<&'a Repo>,
    pr: &'a PrNumber,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a RepoPath>,
    artifacts_to_review: Vec<String>,
    findings: Vec<HandoffFinding<'a>>,
    definition_of_done: [String; 3],
    context_bundle: ContextBundle<'a>,
}

/// A finding of the packet.
#[derive(Debug, Serialize)]
struct HandoffFinding<'a> {
    id: &'a FindingId,
    severity: Severity,
    blocking: bool,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<LineRange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recommendation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<&'a str>,
    raised_in_round: u32,
    review: &'a ReviewKey,
}

#[derive(Debug, Serialize)]
struct ContextBundle<'a> {
    files_touched: Vec<&'a RepoPath>,
    decisions_made: Vec<String>,
    blockers_hit: Vec<String>,
    suggested_next_steps: [String; 2],
}

/// Returns the packet's text.
pub(crate) fn packet(task: &Task, at: Timestamp) -> String {
    let pull = pull_request(task);
    let packet = HandoffPacket {
        schema_version: 1,
        task_id: &task.id,
        source_agent: DAEMON,
        target_agent: &task.target,
        created_at_utc: at,
        intent: intent(task),
        repo: task.repo.as_ref(),
        pr: &task.pr,
        file: task.file.as_ref(),
        artifacts_to_review: std::iter::once(pull)
            .chain(task.file.as_ref().map(|file| file.as_str().to_owned()))
            .collect(),
        findings: task.findings.iter().map(finding).collect(),
        definition_of_done: [
            "every finding of this packet is fixed".to_owned(),
            format!(
                "the review_request of the fix pull request carries `handoff_ref: {}`",
                task.id
            ),
            "the review of the fix pull request ends in approval".to_owned(),
        ],
        context_bundle: ContextBundle {
            files_touched: task.file.iter().collect(),
            decisions_made: task.findings.iter().filter_map(decision).collect(),
            blockers_hit: Vec::new(),
            suggested_next_steps: [
                "fix the findings in one separate pull request".to_owned(),
                format!("ask for its review with `handoff_ref: {}`", task.id),
            ],
        },
    };
    render_document(&packet)
}

/// Returns the message to the fixing agent; `path` leads to its packet.
pub(crate) fn message(head: &NoticeHead<'_>, task: &Task, path: String) -> String {
    let Task { id, findings, .. } = task;
    let place = task
        .file
        .as_ref()
        .map_or("no file named".to_owned(), |file| {
            one_line(file.as_str(), 120)
        });
    let file = task
        .file
        .as_ref()
        .map_or_else(String::new, |file| format!("File: {}\n", file.as_str()));
    let mut body = format!(
        "Task {id}: {}.\n\n{file}Fix {} in one separate pull request. The review_request of that pull request must \
         carry `handoff_ref: {id}` in its body.\nThe same as data: {path}\n",
        intent(task),
        counted(findings.len(), "finding", "findings"),
    );
    for (number, finding) in (1..).zip(findings) {
        body += &described(number, finding);
    }
    let content = NoticeContent {
        kind: MessageType::Text(TextKind::Handoff),
        priority: findings
            .iter()
            .map(|finding| priority(finding.thread.severity))
            .min()
            .unwrap_or(Priority::P2),
        subject: format!(
            "Handoff {id}: {} ({place})",
            counted(findings.len(), "finding", "findings")
        ),
        body: Body::Text(fitted(body, &format!("see {path} for the rest"))),
        related_pr: Some(task.pr.clone()),
        related_packet: Some(path),
        parent_message_id: None,
    };
    write(head, content)
}

/// Describes a finding in words.
fn described(number: usize, finding: &TaskFinding) -> String {
    let TaskFinding { review, id, thread } = finding;
    let lines =
        thread
            .lines
            .map_or_else(String::new, |lines| match (lines.first(), lines.last()) {
                (first, last) if first == last => format!(", line {first}"),
                (first, last) => format!(", lines {first}-{last}"),
            });
    let title = thread.title.as_ref().or(thread.words.as_ref());
    let title = title.map_or_else(String::new, |title| {
        format!(": {}", one_line(title, TITLE_CHARS))
    });
    let id = one_line(id.as_str(), TITLE_CHARS);
    let mut text = format!("\n{number}. {id} ({}{lines}){title}\n", thread.severity);
    if let Some(category) = &thread.routing.category {
        text += &format!("   Category: {}\n", one_line(category, TITLE_CHARS));
    }
    if let Some(recommendation) = &thread.routing.recommendation {
        text += "   Recommendation:\n";
        for line in recommendation.lines() {
            text += &format!("     {}\n", one_line(line, usize::MAX));
        }
    }
    text + &format!(
        "   Raised by {} in round {}; {}.\n",
        review.reviewer,
        thread.opened_in,
        thread.state.word()
    )
}

fn finding(finding: &TaskFinding) -> HandoffFinding<'_> {
    let TaskFinding { review, id, thread } = finding;
    HandoffFinding {
        id,
        severity: thread.severity,
        blocking: thread.blocking,
        state: thread.state.word(),
        title: thread.title.as_deref().or(thread.words.as_deref()),
        category: thread.routing.category.as_deref(),
        lines: thread.lines,
        recommendation: thread.routing.recommendation.as_deref(),
        fingerprint: thread.fingerprint.as_deref(),
        raised_in_round: thread.opened_in,
        review,
    }
}

/// Describes the decision about a finding before its handoff.
fn decision(finding: &TaskFinding) -> Option<String> {
    let TaskFinding { review, id, thread } = finding;
    if thread.is_queued() {
        return Some(format!("{}: a person queued it", id.as_str()));
    }
    match thread.state {
        ThreadState::Held(Hold::Veto) => Some(format!(
            "{}: {} did not accept it as fixed",
            id.as_str(),
            review.reviewer
        )),
        ThreadState::Held(Hold::Escalate) => Some(format!(
            "{}: {} handed it to a person",
            id.as_str(),
            review.reviewer
        )),
        ThreadState::Held(Hold::Person) => Some(format!("{}: a person took it", id.as_str())),
        ThreadState::Deferred => Some(format!(
            "{}: left for later, under a nit or by rule",
            id.as_str()
        )),
        ThreadState::Open | ThreadState::Resolved => None,
    }
}

fn intent(task: &Task) -> String {
    format!(
        "fix the open findings of {}, which was merged",
        pull_request(task)
    )
}

fn pull_request(task: &Task) -> String {
    let of = task
        .repo
        .as_ref()
        .map_or_else(String::new, |repo| format!(" of {repo}"));
    format!("pull request {}{of}", task.pr)
}

fn priority(severity: Severity) -> Priority {
    match severity {
        Severity::P0 => Priority::P0,
        Severity::P1 => Priority::P1,
        Severity::P2 => Priority::P2,
        Severity::P3 => Priority::P3,
    }
}
