//! Writes the content of a pull request event as a small file, for agents that cannot reach the forge.

use message_schema::envelope::Timestamp;
use message_schema::id::{CommitSha, PrNumber, Repo};
use message_schema::render_document;
use review::{PullAction, PullEvent};
use serde::Serialize;

#[derive(Debug, Serialize)]
struct PullEventFile<'a> {
    schema_version: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    repo: Option<&'a Repo>,
    pr: PrNumber,
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<&'a CommitSha>,
    merged: bool,
    at: Timestamp,
}

/// Renders the event as YAML, without anything from earlier events.
pub(crate) fn text(event: &PullEvent, at: Timestamp) -> String {
    let merged = match event.action {
        PullAction::Merged => true,
        PullAction::Opened
        | PullAction::Synchronize
        | PullAction::Reopened
        | PullAction::Closed => false,
    };
    render_document(&PullEventFile {
        schema_version: 1,
        repo: event.repo.as_ref(),
        pr: event.pr.to_canonical(),
        action: event.action.word(),
        author: event.author.as_deref(),
        head: event.head.as_ref(),
        merged,
        at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_says_what_the_event_said_and_every_reader_reads_texts_as_texts() {
        let event = PullEvent {
            repo: None,
            pr: PrNumber::new("0086").expect("a number"),
            action: PullAction::Merged,
            author: Some("no".to_owned()),
            head: Some(CommitSha::new("12345e7").expect("a commit")),
        };
        let at = Timestamp::parse("2026-02-13T10:00:00Z").expect("an instant");
        let said = "schema_version: 1\npr: '86'\naction: merged\nauthor: 'no'\nhead: '12345e7'\nmerged: true\nat: '2026-02-13T10:00:00Z'\n";
        assert_eq!(text(&event, at), said);
    }
}
