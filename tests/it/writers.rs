//! Writers that take their time: a file is read when its writer is done with it, not when it pauses.

use std::fs::File;
use std::io::Write as _;
use std::time::Duration;

use settled_tests::mailroom::Mailroom;
use settled_tests::{names, read, repository, seed, wait};

/// The longest pause the writers here make; shorter ones must lead to the same.
const PAUSE: Duration = Duration::from_millis(700);

/// An open file with this text in it.
fn begin(path: &std::path::Path, text: &str) -> File {
    let mut file = File::create(path).expect("a file to write");
    file.write_all(text.as_bytes()).expect("room");
    file
}

/// A mailroom in which codex is to answer the request.
fn reviewing() -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let [request, ..] = seed::review();
    mailroom.post("claude", request.file, &request.text);
    assert!(mailroom.once().status.success());
    mailroom
}

#[test]
fn a_packet_whose_writer_pauses_is_judged_with_what_comes_after_the_pause() {
    let mailroom = reviewing();
    let _daemon = mailroom.serve();
    let packet = read(repository().join(seed::PACKET));
    let harmless = packet
        .replace("blocking_count: 2", "blocking_count: 0")
        .replace("verdict: changes_requested", "verdict: approve")
        .replace("P1", "P3")
        .replace("blocking: true", "blocking: false");
    let (head, _) = harmless
        .split_once("  - id: F-002")
        .expect("a second finding");
    let (_, blocking) = packet
        .split_once("  - id: F-002")
        .expect("a second finding");
    let mut writer = begin(&mailroom.root().join(seed::PACKET), head);

    let [.., lgtm] = seed::review();
    let text = format!(
        "{}  round: 1\n  findings_packet: {}\n",
        lgtm.text,
        seed::PACKET
    );
    mailroom.post("codex", lgtm.file, &text);
    wait::a_moment(PAUSE);
    assert_eq!(
        names(mailroom.agent("codex", "outbox")),
        [lgtm.file],
        "judged before its packet was whole"
    );
    let rest = format!("  - id: F-002{blocking}").replace("severity: P1", "severity: P0");
    writer.write_all(rest.as_bytes()).expect("room");
    drop(writer);

    mailroom.refused("codex", lgtm.file);
    assert_eq!(names(mailroom.agent("claude", "inbox")), [""; 0]);
    assert_eq!(mailroom.status()["reviews"][0]["phase"], "reviewing");
}

#[test]
fn a_message_whose_writer_pauses_longer_than_a_file_is_made_arrives_whole() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    let text = seed::note("question", "q-1", "claude", "codex", "one\ntwo\n");
    let (head, rest) = text.split_once("two").expect("a second line");
    let mut writer = begin(&mailroom.agent("claude", "outbox").join("a.yaml"), head);
    // The daemon is asked for more than the two seconds after which a linked file counts.
    wait::a_moment(4 * PAUSE);
    writer
        .write_all(format!("two{rest}").as_bytes())
        .expect("room");
    drop(writer);
    assert_eq!(mailroom.delivered("codex", "a.yaml"), text);
}

#[test]
fn a_feedback_that_waits_for_its_packet_is_not_overtaken_by_a_later_lgtm() {
    let mailroom = reviewing();
    let _daemon = mailroom.serve();
    let [_, feedback, .., lgtm] = seed::review();
    mailroom.post("codex", feedback.file, &feedback.text);
    // Its name comes first, so only the order of writing can be what counts.
    mailroom.post("codex", "a-lgtm.yaml", &lgtm.text);
    // Other mail of the same outbox goes on, and by then both have been looked at.
    mailroom.post(
        "codex",
        "note.yaml",
        &seed::note("question", "q-1", "codex", "claude", "?"),
    );
    mailroom.delivered("claude", "note.yaml");
    seed::lay_packet(mailroom.root());
    mailroom.delivered("claude", feedback.file);
    mailroom.refused("codex", "a-lgtm.yaml");
    assert_eq!(mailroom.status()["reviews"][0]["phase"], feedback.phase);
}
