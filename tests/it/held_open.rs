//! Slow writers: a file is read when its writer is finished with it, not when it pauses.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{names, read, repository, seed, wait};

/// The longest pause of the writers here; shorter ones must have the same result.
const PAUSE: Duration = Duration::from_millis(700);

/// An open file that begins with this text.
fn begin(path: &std::path::Path, text: &str) -> File {
    let mut file = File::create(path).expect("a file to write");
    file.write_all(text.as_bytes()).expect("room");
    file
}

/// A process that writes a message in two halves with a pause between them.
struct PausingWriter {
    child: Child,
    text: String,
}

impl PausingWriter {
    /// Starts it and waits until the first half is there.
    fn start(mailroom: &Mailroom, seconds: &str) -> Self {
        let text = seed::note("question", "q-1", "claude", "codex", "one\ntwo\n");
        let (head, rest) = text.split_once("two").expect("a second line");
        let path = mailroom.agent("claude", "outbox").join("a.yaml");
        let script = "(printf %s \"$0\"; sleep \"$2\"; printf %s \"two$1\") > \"$3\"";
        let child = Command::new("sh")
            .args(["-c", script, head, rest, seconds])
            .arg(&path)
            .spawn();
        wait::until("the first half", || !read_if_there(&path).is_empty());
        Self {
            child: child.expect("a shell"),
            text,
        }
    }

    /// Waits for its end and returns the whole text.
    fn ended(mut self) -> String {
        assert!(self.child.wait().expect("our child").success());
        self.text
    }
}

fn read_if_there(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The pauses of a writer, in seconds: above the 0.05 s of a file that nobody has open, below and above the 2 s where the
/// kernel does not tell. Both are below the 30 s for which a file that is open is waited for.
const PAUSES: [&str; 2] = ["0.3", "3"];

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
    // A linked file counts as finished after two seconds, so the pause is longer.
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
    // Its name comes first, so only the order of writing can decide.
    mailroom.post("codex", "a-lgtm.yaml", &lgtm.text);
    // Other mail of the same outbox continues, and once it has arrived the daemon has seen both.
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

#[test]
fn a_writer_that_began_before_a_start_is_waited_for() {
    for pause in PAUSES {
        let mailroom = Mailroom::new(&["claude", "codex"]);
        let writer = PausingWriter::start(&mailroom, pause);
        let _daemon = mailroom.serve();
        let text = writer.ended();
        assert_eq!(mailroom.delivered("codex", "a.yaml"), text, "{pause} s");
    }
}

#[test]
fn a_writer_that_dates_its_file_back_before_a_start_is_waited_for() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let text = seed::note("question", "q-1", "claude", "codex", "one\ntwo\n");
    let (head, rest) = text.split_once("two").expect("a second line");
    let path = mailroom.agent("claude", "outbox").join("a.yaml");
    let mut file = begin(&path, head);
    let an_hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    file.set_modified(an_hour_ago).expect("its time can be set");
    let _daemon = mailroom.serve();
    std::thread::sleep(PAUSE);
    file.write_all(format!("two{rest}").as_bytes())
        .expect("room");
    drop(file);
    assert_eq!(mailroom.delivered("codex", "a.yaml"), text);
}

#[test]
fn a_writer_that_began_before_a_restart_is_waited_for() {
    for pause in PAUSES {
        let mailroom = Mailroom::new(&["claude", "codex"]);
        let before = mailroom.serve();
        let writer = PausingWriter::start(&mailroom, pause);
        before.kill();
        let _daemon = mailroom.serve();
        let text = writer.ended();
        assert_eq!(mailroom.delivered("codex", "a.yaml"), text, "{pause} s");
    }
}

#[test]
fn a_daemon_without_events_waits_for_a_writer_that_pauses() {
    for pause in PAUSES {
        let mailroom = Mailroom::new(&["claude", "codex"]);
        let _daemon = mailroom.serve_without_events();
        let writer = PausingWriter::start(&mailroom, pause);
        let text = writer.ended();
        assert_eq!(mailroom.delivered("codex", "a.yaml"), text, "{pause} s");
    }
}

#[test]
fn a_single_pass_waits_for_a_writer_that_pauses() {
    for pause in PAUSES {
        let mailroom = Mailroom::new(&["claude", "codex"]);
        let writer = PausingWriter::start(&mailroom, pause);
        let output = mailroom.once();
        let text = writer.ended();
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(mailroom.delivered("codex", "a.yaml"), text, "{pause} s");
    }
}

#[test]
fn a_single_pass_leaves_a_file_whose_writer_does_not_end() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let writer = PausingWriter::start(&mailroom, "9");
    let output = mailroom.once();
    assert_eq!(
        names(mailroom.agent("claude", "outbox")),
        ["a.yaml"],
        "{}",
        said(&output)
    );
    let text = writer.ended();
    assert!(mailroom.once().status.success());
    assert_eq!(mailroom.delivered("codex", "a.yaml"), text);
}
