//! Tests which files are orders; the daemon's tests cover what orders do.

use review::{PullAction, PullEvent};

use super::*;

/// Long after these tests wrote any file.
const LATER: DateTime<Utc> = DateTime::<Utc>::MAX_UTC;

fn order(id: &str, second: i64) -> Order {
    let event = Event::Pull(PullEvent {
        repo: None,
        pr: "86".parse().expect("a number"),
        action: PullAction::Opened,
        author: None,
        head: None,
    });
    let at = DateTime::from_timestamp(1_771_000_000 + second, 0).expect("an instant");
    Order::new(id.parse().expect("an id"), at, event)
}

#[test]
fn an_order_is_read_as_it_was_written_and_the_oldest_comes_first() {
    let root = tempfile::tempdir().expect("a directory");
    for (id, second) in [("c", 0), ("a", 2), ("b", 1)] {
        write(root.path(), &order(id, second)).expect("an order");
    }
    std::fs::write(directory(root.path()).join(".x.json.tmp"), "{").expect("a leftover");
    let names = waiting(root.path()).expect("a list");
    let ids: Vec<String> = names
        .iter()
        .map(|name| {
            read(root.path(), name, LATER)
                .expect("readable")
                .expect("there")
                .id
                .to_string()
        })
        .collect();
    assert_eq!(ids, ["c", "b", "a"]);
    assert_eq!(
        read(root.path(), &names[0], LATER).expect("readable"),
        Some(order("c", 0))
    );
    remove(root.path(), &names[0]).expect("removed");
    assert_eq!(read(root.path(), &names[0], LATER).expect("gone"), None);
}

#[test]
fn nobody_but_the_owner_can_write_where_orders_lie() {
    let root = tempfile::tempdir().expect("a directory");
    let own = Layout::new(root.path()).own();
    std::fs::create_dir(&own).expect("a directory");
    std::fs::set_permissions(&own, Permissions::from_mode(0o775)).expect("permissions");
    assert!(make(root.path()).expect("made") && !make(root.path()).expect("there already"));
    let mode = |path: &Path| path.metadata().expect("there").mode() & 0o7777;
    assert_eq!((mode(&own), mode(&directory(root.path()))), (0o755, 0o700));

    std::fs::set_permissions(&own, Permissions::from_mode(0o777)).expect("permissions");
    let error = waiting(root.path()).expect_err("anybody may have put an order there");
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
}

#[test]
fn a_file_that_may_still_be_written_is_given_time() {
    let root = tempfile::tempdir().expect("a directory");
    make(root.path()).expect("made");
    let path = directory(root.path()).join("half.json");
    std::fs::write(&path, "{").expect("a beginning");
    let written = DateTime::<Utc>::from(
        path.metadata()
            .and_then(|data| data.modified())
            .expect("a time"),
    );
    let read = |ms| {
        read(
            root.path(),
            "half.json".as_ref(),
            written + chrono::TimeDelta::milliseconds(ms),
        )
    };
    assert!(matches!(read(1_900), Err(NoOrder::Young(_))));
    assert!(matches!(read(2_100), Err(NoOrder::Unfit(_))));
}

#[test]
fn what_is_no_order_says_why() {
    let root = tempfile::tempdir().expect("a directory");
    make(root.path()).expect("made");
    let place = directory(root.path());
    let good = serde_json::to_string(&order("a", 0)).expect("JSON");
    std::os::unix::fs::symlink("/etc/hostname", place.join("link.json")).expect("a link");
    std::fs::create_dir(place.join("dir.json")).expect("a directory");
    let deadline =
        r#"{"deadline":{"review":{"pr":"86","author":"a","reviewer":"b"},"which":"author"}}"#;
    let person = r#"{"person":{"pr":"86","by":"ann","reason":" ","act":"reopen"}}"#;
    let event = good
        .split_once("\"event\":")
        .expect("an event")
        .1
        .trim_end_matches('}')
        .to_owned()
        + "}}";
    for (name, text) in [
        ("big.json", format!("{good}{}", " ".repeat(256 * 1024))),
        ("half.json", good[..40].to_owned()),
        (
            "newer.json",
            good.replace("\"schema_version\":1", "\"schema_version\":2"),
        ),
        ("deadline.json", good.replace(&event, deadline)),
        ("no-reason.json", good.replace(&event, person)),
        (
            "lines.json",
            good.replace(&event, &person.replace("\" \"", "\"a\\nb\"")),
        ),
        (
            "bidi.json",
            good.replace(&event, &person.replace("ann", "a\u{202e}nn")),
        ),
        (
            "long.json",
            good.replace(
                &event,
                &person.replace("\" \"", &format!("{:?}", "x".repeat(501))),
            ),
        ),
        (
            "author.json",
            good.replace("\"action\"", "\"author\":\"a\\u001b\",\"action\""),
        ),
    ] {
        assert_ne!(text, good, "{name}");
        std::fs::write(place.join(name), text).expect("a file");
    }
    for (name, said) in [
        ("link.json", "regular file"),
        ("dir.json", "regular file"),
        ("big.json", "at most 262144"),
        ("half.json", "EOF"),
        ("newer.json", "schema_version is 2, expected 1"),
        ("deadline.json", "only the daemon reports"),
        (
            "no-reason.json",
            "the reason is expected to have 1 to 500 characters on one line",
        ),
        ("lines.json", "the reason is"),
        ("bidi.json", "the name of the person who decides is"),
        ("long.json", "the reason is"),
        ("author.json", "the author is"),
    ] {
        match read(root.path(), name.as_ref(), LATER) {
            Err(NoOrder::Unfit(why)) => assert!(why.contains(said), "{name}: {why}"),
            other => panic!("{name}: {other:?}"),
        }
        put_aside(root.path(), name.as_ref()).expect("moved");
        assert!(is_put_aside(root.path(), name.as_ref()));
    }
    assert_eq!(waiting(root.path()).expect("a list"), [""; 0]);
}
#[test]
fn what_is_put_aside_keeps_what_lies_there_and_needs_no_name_in_letters() {
    let root = tempfile::tempdir().expect("a directory");
    make(root.path()).expect("made");
    let place = directory(root.path());
    let name = OsStr::from_bytes(b"\xff.json");
    for _ in 0..3 {
        std::fs::create_dir(place.join(name)).expect("a directory");
        std::fs::write(place.join(name).join("inside"), "").expect("a file");
        assert_eq!(waiting(root.path()).expect("a list"), [name]);
        put_aside(root.path(), name).expect("moved");
    }
    assert_eq!(
        std::fs::read_dir(place.join(UNREADABLE))
            .expect("a list")
            .count(),
        3
    );
    std::fs::write(
        place.join(name),
        serde_json::to_string(&order("a", 0)).expect("JSON"),
    )
    .expect("a file");
    assert!(
        matches!(read(root.path(), name, LATER), Err(NoOrder::Unfit(why)) if why.contains("name"))
    );
}

#[test]
fn nobody_orders_what_only_the_daemon_can_see() {
    let which = review::Which {
        pr: "86".parse().expect("a number"),
        repo: None,
        reviewer: None,
    };
    for event in [
        Event::Started(which.clone()),
        Event::Failed {
            which: which.clone(),
            failure: review::RunFailure {
                cause: review::FailureCause::Crashed,
                why: "it crashed".to_owned(),
                retry_after: None,
                run: None,
            },
        },
    ] {
        assert!(check(&event).is_err(), "{event:?}");
    }
    assert!(check(&Event::Taken(which)).is_ok());
}

#[test]
fn orders_are_given_by_the_owner_and_by_root() {
    for (user, owner, may) in [
        (1000, 1000, true),
        (0, 1000, true),
        (0, 0, true),
        (1001, 1000, false),
        (1000, 0, false),
    ] {
        assert_eq!(
            may_order(user, owner),
            may,
            "{user} in a workspace of {owner}"
        );
    }
}

#[test]
fn an_order_about_a_pair_has_a_task_of_16_kib_a_reason_of_500_and_a_transcript_of_4000_characters()
{
    let step = |step: serde_json::Value| {
        let report = serde_json::json!({"pair": {"pair": "pair-1", "what": step}});
        check(&serde_json::from_value(report).expect("an event"))
    };
    let member = serde_json::json!({"agent": "claude", "command": "run", "output": "text"});
    let opened = |task: String| {
        step(serde_json::json!({"opened": {
            "author": member, "workdir": "/", "task": task, "iterations": 1, "run_seconds": 1,
            "seconds": 1, "words": {"done": "done", "pass": "pass", "fail": "fail"}
        }}))
    };
    let crashed = |why: String, said: String| {
        let run = serde_json::json!({"start": 1, "ms": 1, "said": said, "length": 1});
        step(serde_json::json!({"crashed": {"why": why, "run": run}}))
    };
    let refused = |why: &str| Err(why.to_owned());
    let task = "the task must have 1 to 16384 bytes";
    assert_eq!(opened("x".repeat(16_384)), Ok(()));
    assert_eq!(opened("x".repeat(16_385)), refused(task));
    assert_eq!(opened(" \n".to_owned()), refused(task));

    assert_eq!(crashed("ü".repeat(500), "ü".repeat(4_000)), Ok(()));
    assert_eq!(
        crashed("ü".repeat(501), "x".to_owned()),
        refused("the reason is expected to have 1 to 500 characters on one line")
    );
    assert_eq!(
        crashed("x".to_owned(), "ü".repeat(4_001)),
        refused("the transcript must have at most 4000 characters")
    );
}

#[test]
fn an_order_holds_only_what_its_giver_can_know_and_the_ledger_takes() {
    let daemon = "only the daemon reports";
    let fit = "is expected to have 1 to 500 characters on one line";
    let key = r#"{"pr":"86","author":"a","reviewer":"b"}"#;
    let digest = format!("sha256:{}", "0".repeat(64));
    let long = "x".repeat(501);
    let at_most = "x".repeat(500);
    for (event, refused) in [
        (r#"{"taken":{"pr":"86"}}"#, None),
        (r#"{"turns":{"pr":"86","count":1}}"#, None),
        (r#"{"started":{"pr":"86"}}"#, Some(daemon)),
        (r#"{"observed":{"pr":"86","files":[]}}"#, Some(daemon)),
        (
            &format!(r#"{{"deadline":{{"review":{key},"which":"author"}}}}"#),
            Some(daemon),
        ),
        (
            &format!(r#"{{"spent":{{"review":{key},"agent":"b","run":"1"}}}}"#),
            Some(daemon),
        ),
        (
            r#"{"sent_differs":{"agent":"a","file":"f","seq":1}}"#,
            Some(daemon),
        ),
        (
            r#"{"ledger_accepted":{"by":"ann","reason":"r","head":"h"}}"#,
            Some("accepted with `settled ledger accept`"),
        ),
        (
            &format!(
                r#"{{"ran":{{"pr":"86","run":{{"command":"make","duration_ms":1,"output":"{digest}"}}}}}}"#
            ),
            None,
        ),
        (
            &format!(
                r#"{{"ran":{{"pr":"86","run":{{"command":"{long}","duration_ms":1,"output":"{digest}"}}}}}}"#
            ),
            Some(fit),
        ),
        (r#"{"pull":{"pr":"86","action":"opened"}}"#, None),
        (
            r#"{"pull":{"pr":"86","action":"opened","author":"a"}}"#,
            None,
        ),
        (
            r#"{"pull":{"pr":"86","action":"opened","author":""}}"#,
            Some("the author is expected"),
        ),
        (
            &format!(
                r#"{{"person":{{"pr":"86","by":"ann","reason":"{at_most}","act":"reopen"}}}}"#
            ),
            None,
        ),
        (
            &format!(r#"{{"person":{{"pr":"86","by":"ann","reason":"{long}","act":"reopen"}}}}"#),
            Some("the reason"),
        ),
        (
            r#"{"person":{"pr":"86","by":" ","reason":"r","act":"reopen"}}"#,
            Some("the name of the person"),
        ),
        (
            r#"{"host":{"claimed":{"host":"tower","agents":["a"]}}}"#,
            None,
        ),
        (
            r#"{"host":{"key_retired":{"host":"tower","by":"ann","reason":"lost"}}}"#,
            None,
        ),
        (
            r#"{"host":{"key_retired":{"host":"tower","by":"","reason":"lost"}}}"#,
            Some("the name of the person"),
        ),
        (
            r#"{"host":{"key_retired":{"host":"tower","by":"ann","reason":"a\nb"}}}"#,
            Some("the reason"),
        ),
        (r#"{"pair":{"pair":"pair-1","what":"started"}}"#, None),
        (
            r#"{"pair":{"pair":"pair-1","what":{"not_started":{"why":"no program"}}}}"#,
            None,
        ),
        (
            r#"{"pair":{"pair":"pair-1","what":{"not_started":{"why":""}}}}"#,
            Some("the reason"),
        ),
    ] {
        let read = serde_json::from_str(event);
        let checked = check(&read.unwrap_or_else(|error| panic!("{event}: {error}")));
        match refused {
            None => assert_eq!(checked, Ok(()), "{event}"),
            Some(why) => assert!(
                checked.as_ref().is_err_and(|said| said.contains(why)),
                "{event}: {checked:?}"
            ),
        }
    }
}

#[test]
fn an_order_is_as_large_as_a_message_at_most_and_gone_orders_are_none() {
    let root = tempfile::tempdir().expect("a directory");
    assert_eq!(waiting(root.path()).expect("nothing is there"), [""; 0]);
    write(root.path(), &order("a", 0)).expect("an order");
    let name = waiting(root.path()).expect("a list").remove(0);
    let path = directory(root.path()).join(&name);
    let text = std::fs::read_to_string(&path).expect("an order");
    let room = usize::try_from(SIZE_MAX).expect("a size") - text.len();
    std::fs::write(&path, format!("{text}{}", " ".repeat(room))).expect("written");
    assert_eq!(
        read(root.path(), &name, LATER).expect("readable"),
        Some(order("a", 0))
    );
    remove(root.path(), &name).expect("removed");
    remove(root.path(), &name).expect("it is gone already");
    assert!(!is_put_aside(root.path(), &name));
}

#[test]
fn what_cannot_be_listed_or_removed_is_told_and_not_taken_for_gone() {
    let root = tempfile::tempdir().expect("a directory");
    make(root.path()).expect("made");
    std::fs::create_dir(directory(root.path()).join("dir.json")).expect("a directory");
    remove(root.path(), "dir.json".as_ref()).expect_err("it is no file");
    std::fs::remove_dir_all(directory(root.path())).expect("removed");
    std::fs::write(directory(root.path()), "").expect("a file in its place");
    waiting(root.path()).expect_err("nothing can be listed");
    read(root.path(), "a.json".as_ref(), LATER).expect_err("nothing can be there");
    make(root.path()).expect_err("nothing can be put there");
}
