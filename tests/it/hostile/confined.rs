//! The daemon reads and writes nothing outside the workspace, whatever agents put there: proved by a canary, and by a
//! trace of every call that names a file.

use std::path::{Path, PathBuf};
use std::process::Command;

use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{binaries, list, names, read, seed, write};

/// The text of the files outside, which must appear nowhere.
const SECRET: &str = "the canary sings";

/// Directories outside of a workspace, laid out as agents' directories are.
struct Outside {
    directory: tempfile::TempDir,
}

impl Outside {
    fn new() -> Self {
        let outside = Self {
            directory: settled_tests::scratch(),
        };
        for agent in [
            "zed/outbox",
            "zed/inbox",
            "outbox",
            "inbox",
            "sent",
            "dead_letter",
            "packets",
        ] {
            std::fs::create_dir_all(outside.path(agent)).expect("a directory");
        }
        for outbox in ["zed/outbox", "outbox"] {
            let text = seed::note("question", "q-9", "zed", "claude", SECRET);
            write(outside.path(outbox).join("canary.yaml"), &text);
        }
        write(
            outside.path("packets/f.yaml"),
            &format!("findings:\n- {{id: {SECRET}}}\n"),
        );
        write(outside.path("packets/secret"), &format!("{SECRET}: [\n"));
        outside
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    /// Every file and its text.
    fn listing(&self) -> Vec<(PathBuf, String)> {
        texts(self.directory.path())
    }
}

/// Every file below a directory with its text; links are not followed.
fn texts(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for path in list(directory) {
        let data = path.symlink_metadata().expect("it was listed");
        if data.is_dir() {
            found.extend(texts(&path));
            found.push((path, String::new()));
        } else if data.is_file() {
            let bytes = std::fs::read(&path).expect("a file");
            found.push((path, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    found
}

/// A workspace in which mallory replaced everything it could by links.
fn besieged(outside: &Outside) -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex", "outboxer", "inboxer", "mallory"]);
    let replace = |at: PathBuf, by: &str| {
        std::fs::remove_dir(&at).expect("an empty directory");
        std::os::unix::fs::symlink(outside.path(by), at).expect("a link");
    };
    std::os::unix::fs::symlink(outside.path("zed"), mailroom.root().join("agents/zed"))
        .expect("a link");
    replace(mailroom.agent("outboxer", "outbox"), "outbox");
    replace(mailroom.agent("inboxer", "inbox"), "inbox");
    replace(mailroom.agent("mallory", "sent"), "sent");
    replace(mailroom.agent("mallory", "dead_letter"), "dead_letter");

    let link = |to: PathBuf, at: &str| {
        std::os::unix::fs::symlink(to, mailroom.root().join(at)).expect("a link");
    };
    link(outside.path("packets/f.yaml"), "packets/findings/link.yaml");
    link(outside.path("packets"), "packets/door");
    std::fs::hard_link(
        outside.path("packets/f.yaml"),
        mailroom.root().join("packets/findings/hard.yaml"),
    )
    .expect("a link on one file system");
    std::fs::hard_link(
        outside.path("packets/secret"),
        mailroom.agent("codex", "outbox").join("hard.yaml"),
    )
    .expect("a link on one file system");
    link(
        outside.path("packets/secret"),
        "agents/codex/outbox/link.yaml",
    );

    let request = seed::review_message(
        "review_request",
        "r-1",
        "claude",
        "codex",
        "86",
        "pr: 86\nbranch: b\ndiff_summary: s\n",
    );
    mailroom.post("claude", "request.yaml", &request);
    for (number, packet) in [
        "findings/link.yaml",
        "door/f.yaml",
        "findings/hard.yaml",
        "findings/../../x.yaml",
    ]
    .iter()
    .enumerate()
    {
        let body = format!("findings_packet: packets/{packet}\nround: 1\nblocking_count: 0\n");
        let text = seed::review_message(
            "review_feedback",
            &format!("f-{number}"),
            "codex",
            "claude",
            "86",
            &body,
        );
        mailroom.post("codex", &format!("f-{number}.yaml"), &text);
    }
    mailroom.post(
        "mallory",
        "good.yaml",
        &seed::note("question", "m-1", "mallory", "claude", "?"),
    );
    mailroom.post("mallory", "bad.yaml", "id: [");
    mailroom.post(
        "claude",
        "to-inboxer.yaml",
        &seed::note("question", "q-1", "claude", "inboxer", "?"),
    );
    mailroom.post(
        "claude",
        "to-codex.yaml",
        &seed::note("question", "q-2", "claude", "codex", "?"),
    );
    mailroom
}

fn is_untouched(mailroom: &Mailroom, outside: &Outside, before: &[(PathBuf, String)]) {
    assert_eq!(outside.listing(), before, "something outside was changed");
    for (path, text) in texts(mailroom.root()) {
        // The two hard links are second names of the files outside.
        let is_link = path.ends_with("hard.yaml");
        assert!(
            is_link || !text.contains(SECRET),
            "{} tells what is outside",
            path.display()
        );
    }
}

#[test]
fn links_to_elsewhere_are_neither_followed_nor_read_and_others_are_served() {
    let outside = Outside::new();
    let before = outside.listing();
    let mailroom = besieged(&outside);
    let output = mailroom.once();
    // Reports and mail for directories that are links wait; the exit code says so.
    assert_eq!(output.status.code(), Some(9), "{}", said(&output));
    assert_eq!(
        mailroom.refused("codex", "hard.yaml")["refused"],
        "not_a_file"
    );
    assert_eq!(
        mailroom.refused("codex", "link.yaml")["refused"],
        "not_a_file"
    );
    for number in 0..3 {
        assert_eq!(
            mailroom.refused("codex", &format!("f-{number}.yaml"))["refused"],
            "packet_unsafe",
            "{number}"
        );
    }
    assert_eq!(
        mailroom.refused("codex", "f-3.yaml")["refused"],
        "body_field_invalid"
    );
    assert_eq!(
        names(mailroom.agent("codex", "inbox"))
            .iter()
            .filter(|name| *name == "to-codex.yaml")
            .count(),
        1
    );
    assert!(names(mailroom.agent("claude", "inbox")).contains(&"good.yaml".to_owned()));
    is_untouched(&mailroom, &outside, &before);

    // Once the link is gone, the waiting mail arrives.
    std::fs::remove_file(mailroom.agent("inboxer", "inbox")).expect("the link");
    std::fs::create_dir(mailroom.agent("inboxer", "inbox")).expect("an inbox");
    mailroom.once();
    assert!(names(mailroom.agent("inboxer", "inbox")).contains(&"to-inboxer.yaml".to_owned()));
}

#[test]
fn a_serving_daemon_watches_and_lists_nothing_behind_a_link() {
    let outside = Outside::new();
    let before = outside.listing();
    let mailroom = besieged(&outside);
    let daemon = mailroom.serve();
    mailroom.delivered("claude", "good.yaml");
    mailroom.refused("codex", "f-2.yaml");
    assert!(daemon.interrupt().success());
    is_untouched(&mailroom, &outside, &before);
}

/// Where a process may read files outside the workspace: its libraries and the kernel's answers. It may write to none.
const SYSTEM: [&str; 6] = ["/etc/", "/lib", "/usr/", "/proc/", "/sys/", "/dev/"];

#[test]
fn the_trace_of_a_hostile_run_names_no_file_outside() {
    let outside = Outside::new();
    let mailroom = besieged(&outside);
    let trace = outside.directory.path().with_extension("trace");
    let output = Command::new("strace")
        .args(["-f", "-y", "-s", "4096", "-e", "trace=%file", "-o"])
        .arg(&trace)
        .arg(binaries::settled())
        .args(["serve", "--once"])
        .arg(mailroom.root())
        .env_remove("SETTLED_ROOT")
        .output()
        .unwrap_or_else(|error| {
            panic!("these tests need `strace` (Debian: apt install strace): {error}")
        });
    assert_eq!(output.status.code(), Some(9), "{}", said(&output));
    let calls = read(&trace);
    std::fs::remove_file(&trace).expect("the trace");
    let root = mailroom
        .root()
        .canonicalize()
        .expect("a root")
        .to_string_lossy()
        .into_owned();
    let outside = outside
        .directory
        .path()
        .canonicalize()
        .expect("a directory")
        .to_string_lossy()
        .into_owned();
    let mut opened = 0;
    for call in calls.lines().filter(|call| !call.contains(" = -1 ")) {
        assert!(!call.contains(&outside), "outside of the workspace: {call}");
        // `openat(5</root/agents>, "x", FLAGS) = 7</root/agents/x>`
        let Some((asked, answer)) = call
            .rsplit_once(" = ")
            .filter(|(asked, _)| asked.contains("open"))
        else {
            continue;
        };
        let Some(path) = answer
            .split_once('<')
            .and_then(|(_, path)| path.strip_suffix('>'))
        else {
            continue;
        };
        let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"]
            .iter()
            .any(|flag| asked.contains(flag));
        let is_ours = path == root
            || path
                .strip_prefix(&root)
                .is_some_and(|rest| rest.starts_with('/'));
        let is_systems = SYSTEM.iter().any(|place| path.starts_with(place));
        let may_write = path.starts_with("/dev/") || path.starts_with("/proc/");
        assert!(
            is_ours || (is_systems && (!writes || may_write)),
            "opened outside of the workspace: {call}"
        );
        opened += usize::from(is_ours);
    }
    assert!(
        opened > 50,
        "the trace does not show the run: {opened} files of the workspace\n{calls}"
    );
}
