//! Tests the answers about files that the daemon has not judged yet: whether it reads them, what the validator finds, and
//! the review that they claim to be about.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use inspect::status::pending::{ClaimedReview, PendingMail};
use inspect::unjudged::{UnjudgedFile, in_outbox};
use message_schema::id::AgentName;
use tempfile::TempDir;
use workspace::directory;

const QUESTION: &str = "id: q-1\nfrom: claude\nto: codex\ntype: question\npriority: P1\n\
    created_at_utc: \"2026-11-23T08:01:28Z\"\nsubject: Which\nbody: |\n  Which?\n";

fn agent(name: &str) -> AgentName {
    name.parse().expect("a name")
}

fn workspace() -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    directory::init(root.path(), &["claude", "codex"].map(agent)).expect("a workspace");
    root
}

fn put(root: &Path, file: &str, text: &str) {
    fs::write(root.join(file), text).expect("a file");
}

fn feedback(packet: &str) -> String {
    format!(
        "id: fb-1\nfrom: claude\nto: codex\ntype: review_feedback\npriority: P1\n\
         created_at_utc: \"2026-11-23T08:01:28Z\"\nrelated_pr: \"86\"\nsubject: Feedback\nbody: |\n  \
         findings_packet: {packet}\n  round: 1\n  blocking_count: 1\n"
    )
}

/// The files in claude's outbox, one a line: the name, `-` if no daemon reads it, the id, and the codes of the errors.
fn listed(root: &Path, at_most: usize) -> (Vec<String>, usize) {
    let (files, count) = in_outbox(root, &agent("claude"), at_most);
    let line = |file: UnjudgedFile| {
        let name = file.path.strip_prefix("agents/claude/outbox/");
        let name = name.expect("the outbox");
        let read = if file.is_read { "" } else { " -" };
        let id = file.id.map_or_else(String::new, |id| format!(" {id}"));
        let errors = file.errors.join("; ");
        format!("{name}{read}{id} {errors}").trim().to_owned()
    };
    (files.into_iter().map(line).collect(), count)
}

#[test]
fn an_outbox_lists_what_the_daemon_will_read_and_what_it_will_not() {
    let root = workspace();
    let root = root.path();
    assert_eq!(listed(root, 9), (vec![], 0));
    let outbox = root.join("agents/claude/outbox");
    put(&outbox, "b.yaml", QUESTION);
    put(&outbox, "a.yaml.tmp", QUESTION);
    put(&outbox, ".hidden.yaml", QUESTION);
    fs::create_dir(outbox.join("folder.yaml")).expect("a directory");
    let (files, count) = listed(root, 9);
    assert_eq!(
        (&*files, count),
        (&["a.yaml.tmp -".to_owned(), "b.yaml q-1".to_owned()][..], 2)
    );
    let (files, count) = listed(root, 1);
    assert_eq!(
        (&*files, count),
        (&["a.yaml.tmp -".to_owned()][..], 2),
        "the first, and how many"
    );
    symlink("b.yaml", outbox.join("c.yaml")).expect("a link");
    put(&outbox, "d.yaml", "id: [\n");
    let files = listed(root, 9).0;
    for (file, said) in [
        (2, "c.yaml agents/claude/outbox/c.yaml: "),
        (3, "d.yaml agents/claude/outbox/d.yaml:"),
    ] {
        assert!(files[file].starts_with(said), "{}", files[file]);
    }
}

#[test]
fn a_file_that_nobody_reads_has_a_name_under_which_it_would_be_read() {
    for (path, renamed) in [
        ("a.yaml.tmp", "a.yaml"),
        ("a.yml.part", "a.yml"),
        ("a.json.bak", "a.json"),
        ("a.txt", "a.yaml"),
        ("a.md", "a.md.yaml"),
        ("a", "a.yaml"),
    ] {
        let file = UnjudgedFile {
            path: path.to_owned(),
            id: None,
            errors: Vec::new(),
            is_read: false,
        };
        assert_eq!(file.renamed(), renamed);
    }
}

#[test]
fn a_packet_is_read_as_the_daemon_reads_it() {
    const FINDINGS: &str =
        "findings:\n- {id: F-1, severity: P1, status: open, title: a bug, file: a.rs, line: 1}\n";
    let root = workspace();
    let root = root.path();
    let packets = root.join("packets/findings");
    put(&packets, "right.yaml", FINDINGS);
    let most = 256 * 1024;
    put(
        &packets,
        "largest.yaml",
        &format!("{FINDINGS}#{}", " ".repeat(most - FINDINGS.len() - 1)),
    );
    put(
        &packets,
        "large.yaml",
        &format!("{FINDINGS}#{}", " ".repeat(most - FINDINGS.len())),
    );
    fs::create_dir(packets.join("folder.yaml")).expect("a directory");
    symlink("right.yaml", packets.join("link.yaml")).expect("a link");
    symlink("findings", root.join("packets/elsewhere")).expect("a link");
    for (packet, said) in [
        ("packets/findings/right.yaml", None),
        ("packets/findings/largest.yaml", None),
        ("packets/findings/none.yaml", Some("packet_missing")),
        ("packets/findings/large.yaml", Some("is too large")),
        (
            "packets/findings/folder.yaml",
            Some("it is not a regular file"),
        ),
        (
            "packets/findings/link.yaml",
            Some("it is not a regular file, or reached through a link"),
        ),
        ("packets/elsewhere/right.yaml", Some("packet_unsafe")),
        ("agents/codex/inbox/a.yaml", Some("packet_unsafe")),
    ] {
        put(root, "agents/claude/outbox/fb.yaml", &feedback(packet));
        let files = listed(root, 9).0;
        match said {
            None => assert_eq!(files, ["fb.yaml fb-1"], "{packet}"),
            Some(said) => assert!(files[0].contains(said), "{packet}: {}", files[0]),
        }
    }
}

#[test]
fn a_file_claims_the_pull_request_it_names_and_mail_of_a_review_may_mean_any() {
    let root = workspace();
    let root = root.path();
    let outbox = root.join("agents/claude/outbox");
    put(&outbox, "a.yaml", &feedback("x"));
    put(
        &outbox,
        "b.yaml",
        &feedback("x").replace("related_pr: \"86\"\n", ""),
    );
    put(&outbox, "c.yaml", QUESTION);
    put(&outbox, "d.yaml", "[");
    let claim = |file: &str| {
        let ClaimedReview { pr, is_review } = ClaimedReview::of(&outbox.join(file));
        (pr.map(|pr| pr.to_string()), is_review)
    };
    assert_eq!(claim("a.yaml"), (Some("86".to_owned()), true));
    assert_eq!(claim("b.yaml"), (None, true));
    for file in ["c.yaml", "d.yaml", "none.yaml", "."] {
        assert_eq!(claim(file), (None, false), "{file}");
    }
    put(&root.join("agents/codex/outbox"), "e.yaml", QUESTION);
    let pending = PendingMail::read(root, &["claude", "codex", "gemini"].map(agent));
    assert_eq!(pending.counts, [(agent("claude"), 4), (agent("codex"), 1)]);
    assert_eq!((pending.count(), pending.files.len()), (5, 5));
    let since = pending.files.iter().filter_map(|file| file.since);
    assert_eq!(pending.oldest(), since.min());
    assert!(pending.oldest().is_some());
    assert_eq!(PendingMail::default().oldest(), None);
}
