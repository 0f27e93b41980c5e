//! Reads the `pull_request` payload of a GitHub webhook as an event of the rules. The caller receives the webhook.

use message_schema::id::{CommitSha, Repo};
use review::{PullAction, PullEvent};
use serde::Deserialize;

/// The meaning of a payload.
#[derive(Debug, PartialEq, Eq)]
pub enum GithubEvent {
    /// An event that may move reviews.
    Event(PullEvent),
    /// Another action on a pull request, in the forge's word.
    Other(String),
}

#[derive(Deserialize)]
struct Payload {
    action: String,
    number: Option<u64>,
    pull_request: Pull,
    repository: Option<Repository>,
}

#[derive(Deserialize)]
struct Pull {
    #[serde(default)]
    merged: Option<bool>,
    number: Option<u64>,
    head: Option<Head>,
    user: Option<User>,
}

#[derive(Deserialize)]
struct Head {
    sha: CommitSha,
}

#[derive(Deserialize)]
struct User {
    login: String,
}

#[derive(Deserialize)]
struct Repository {
    full_name: Repo,
}

/// Reads a payload; the error says in a phrase what is missing or wrong.
pub fn read(bytes: &[u8]) -> Result<GithubEvent, String> {
    let payload: Payload = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let pull = payload.pull_request;
    let action = match payload.action.as_str() {
        "opened" => PullAction::Opened,
        "synchronize" => PullAction::Synchronize,
        "reopened" => PullAction::Reopened,
        "closed" => match pull.merged {
            Some(true) => PullAction::Merged,
            Some(false) => PullAction::Closed,
            None => return Err("`closed` does not say whether it was `merged`".to_owned()),
        },
        _ => return Ok(GithubEvent::Other(payload.action)),
    };
    let number = payload
        .number
        .or(pull.number)
        .ok_or("the `number` of the pull request is missing")?;
    Ok(GithubEvent::Event(PullEvent {
        repo: payload.repository.map(|repository| repository.full_name),
        pr: number
            .to_string()
            .parse()
            .expect("a number of at most 20 digits"),
        action,
        author: pull.user.map(|user| user.login),
        head: pull.head.map(|head| head.sha),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(action: &str, merged: &str) -> String {
        format!(
            r#"{{"action":"{action}","number":86,"pull_request":{{"merged":{merged},"head":{{"sha":"9b2f41c0","ref":"x"}},
            "user":{{"login":"octocat","id":1}}}},"repository":{{"full_name":"Owner/Name","id":2}},"sender":{{}}}}"#
        )
    }

    #[test]
    fn closed_and_merged_are_told_apart() {
        for (action, merged, expected) in [
            ("opened", "false", PullAction::Opened),
            ("synchronize", "null", PullAction::Synchronize),
            ("reopened", "false", PullAction::Reopened),
            ("closed", "false", PullAction::Closed),
            ("closed", "true", PullAction::Merged),
        ] {
            let event = PullEvent {
                repo: Some("Owner/Name".parse().expect("a repository")),
                pr: "86".parse().expect("a number"),
                action: expected,
                author: Some("octocat".to_owned()),
                head: Some("9b2f41c0".parse().expect("a commit")),
            };
            assert_eq!(
                read(payload(action, merged).as_bytes()),
                Ok(GithubEvent::Event(event))
            );
        }
        assert_eq!(
            read(payload("labeled", "false").as_bytes()),
            Ok(GithubEvent::Other("labeled".to_owned()))
        );
    }

    #[test]
    fn what_is_no_payload_says_what_is_missing() {
        for (text, said) in [
            ("", "EOF"),
            ("[]", "expected struct Payload"),
            (
                r#"{"action":"opened","issue":{}}"#,
                "missing field `pull_request`",
            ),
            (
                r#"{"action":"opened","pull_request":{}}"#,
                "`number` of the pull request is missing",
            ),
            (
                &payload("opened", "false").replace("9b2f41c0", "main"),
                "expected a commit",
            ),
            (
                &payload("opened", "false").replace("Owner/Name", "name"),
                "owner/name",
            ),
            (
                &payload("closed", "null"),
                "does not say whether it was `merged`",
            ),
        ] {
            let why = read(text.as_bytes()).expect_err(text);
            assert!(why.contains(said), "{text}: {why}");
        }
    }
}
