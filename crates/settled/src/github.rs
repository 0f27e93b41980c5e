//! What a forge tells of a pull request, as the rules know it: the `pull_request` payload of a
//! GitHub webhook. Who receives it is the caller's business.

use message_schema::id::{CommitSha, PrNumber, Repo};
use review::{PullAction, PullEvent};
use serde_json::Value;

/// A payload that says it is about a pull request and does not say what is needed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the payload's `{field}` is {found}, expected {expected}")]
pub struct NotAPullRequest {
    /// Where in the payload, dotted.
    pub field: &'static str,
    /// What stands there.
    pub found: String,
    /// What would have been accepted.
    pub expected: &'static str,
}

/// Reads a payload; `None` for an action that changes neither the state nor the head, such as a label.
pub fn pull_event(payload: &Value) -> Result<Option<PullEvent>, NotAPullRequest> {
    let action = text(payload, "/action")
        .ok_or_else(|| wrong(payload, "action", "/action", "the name of what happened, such as `opened`"))?;
    let action = match action {
        "opened" => PullAction::Opened,
        "synchronize" => PullAction::Synchronize,
        "reopened" => PullAction::Reopened,
        "closed" => match payload.pointer("/pull_request/merged").and_then(Value::as_bool) {
            Some(true) => PullAction::Merged,
            Some(false) => PullAction::Closed,
            None => {
                let field = "pull_request.merged";
                return Err(wrong(payload, field, "/pull_request/merged", "true or false"));
            }
        },
        _ => return Ok(None),
    };
    let number = payload.pointer("/pull_request/number").or_else(|| payload.get("number"));
    let pr = number.and_then(Value::as_u64).and_then(|number| PrNumber::new(number.to_string()).ok());
    let pr = pr.ok_or_else(|| {
        wrong(payload, "pull_request.number", "/pull_request/number", "the number of the pull request")
    })?;
    let repo = named(payload, "repository.full_name", "/repository/full_name", Repo::EXPECTED, Repo::new)?;
    let head = named(
        payload,
        "pull_request.head.sha",
        "/pull_request/head/sha",
        CommitSha::EXPECTED,
        CommitSha::new,
    )?;
    let author = text(payload, "/pull_request/user/login").map(str::to_owned);
    Ok(Some(PullEvent { repo, pr, action, author, head }))
}

fn text<'v>(payload: &'v Value, pointer: &str) -> Option<&'v str> {
    payload.pointer(pointer).and_then(Value::as_str)
}

/// A value that may be left out, but not be another thing.
fn named<T, E>(
    payload: &Value,
    field: &'static str,
    pointer: &str,
    expected: &'static str,
    read: impl Fn(String) -> Result<T, E>,
) -> Result<Option<T>, NotAPullRequest> {
    match payload.pointer(pointer) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_str()
            .and_then(|text| read(text.to_owned()).ok())
            .map(Some)
            .ok_or_else(|| wrong(payload, field, pointer, expected)),
    }
}

fn wrong(payload: &Value, field: &'static str, pointer: &str, expected: &'static str) -> NotAPullRequest {
    let found = payload.pointer(pointer).map_or_else(|| "missing".to_owned(), Value::to_string);
    NotAPullRequest { field, found, expected }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn closed(merged: &Value) -> Value {
        json!({
            "action": "closed",
            "number": 86,
            "pull_request": {
                "number": 86, "merged": merged, "user": { "login": "octocat" },
                "head": { "sha": "6dcb09b5b57875f334f61aebed695e2e4193db5e" },
            },
            "repository": { "full_name": "octocat/Hello-World" },
        })
    }

    #[test]
    fn a_closed_pull_request_was_merged_or_it_was_not() {
        let event = pull_event(&closed(&true.into())).expect("readable").expect("an event");
        assert_eq!((event.pr.as_str(), event.action), ("86", PullAction::Merged));
        assert_eq!(event.author.as_deref(), Some("octocat"));
        assert_eq!(event.repo.map(String::from).as_deref(), Some("octocat/Hello-World"));
        assert_eq!(event.head.map(String::from).as_deref(), Some("6dcb09b5b57875f334f61aebed695e2e4193db5e"));
        let event = pull_event(&closed(&false.into())).expect("readable").expect("an event");
        assert_eq!(event.action, PullAction::Closed);
        let error = pull_event(&closed(&Value::Null)).expect_err("neither");
        assert_eq!(error.to_string(), "the payload's `pull_request.merged` is null, expected true or false");
    }

    #[test]
    fn a_label_is_no_event_and_a_payload_of_something_else_is_an_error() {
        let labeled = json!({ "action": "labeled", "number": 86 });
        assert_eq!(pull_event(&labeled), Ok(None));
        assert_eq!(pull_event(&json!({ "zen": "…" })).expect_err("a ping").field, "action");
        let error = pull_event(&json!({ "action": "opened" })).expect_err("no number");
        assert_eq!(error.field, "pull_request.number");
    }
}
