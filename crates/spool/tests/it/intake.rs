//! A file is taken once, whole, and when its writer is done; no file holds up another.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use spool::{Body, Disk, FaultyDisk, Intake, Now, OutboxFile, Spool, Unfit};

use crate::daemon::{BOOT, LATER, Workspace, make_fifo, name, scan};

/// A fixed instant at which the files of these tests are written, in milliseconds since 1970.
const WRITTEN: i64 = 1_770_000_000_000;
pub(crate) const QUIET: u64 = 50;

pub(crate) struct Desk {
    pub(crate) workspace: Workspace,
    pub(crate) disk: Arc<FaultyDisk>,
    pub(crate) spool: Spool,
    pub(crate) intake: Intake,
    pub(crate) agents: Vec<String>,
}

impl Desk {
    pub(crate) fn new(agents: &[&str]) -> Desk {
        let workspace = Workspace::new(agents);
        let disk = Arc::new(FaultyDisk::new(BOOT));
        let spool = Spool::open(
            workspace.root(),
            Arc::clone(&disk) as Arc<dyn Disk>,
            &mut |_| Ok(()),
        )
        .expect("a start")
        .spool;
        let agents = agents.iter().map(|agent| (*agent).to_owned()).collect();
        Desk {
            workspace,
            disk,
            spool,
            intake: Intake::new(1000, QUIET),
            agents,
        }
    }

    /// Writes a file and dates its last change `ms` after the fixed instant.
    pub(crate) fn write(&self, path: &str, text: &str, ms: i64) {
        let path = self.workspace.path(&format!("agents/{path}"));
        std::fs::write(&path, text).expect("a file to write");
        let time =
            UNIX_EPOCH + Duration::from_millis(u64::try_from(WRITTEN + ms).expect("after 1970"));
        std::fs::File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_modified(time))
            .expect("a time");
    }

    pub(crate) fn scan(&mut self) {
        assert!(scan(&mut self.intake, &self.spool.view(), &self.agents).is_empty());
    }

    pub(crate) fn take_all(&mut self, now: Now) -> Vec<OutboxFile> {
        let taken = self.intake.take(&self.spool.view(), now, 1000);
        assert!(taken.errors.is_empty(), "{:?}", taken.errors);
        taken.found
    }

    pub(crate) fn take(&mut self, now: Now) -> Vec<String> {
        self.take_all(now)
            .iter()
            .map(|found| found.file.to_string())
            .collect()
    }
}

/// Returns the time `ms` milliseconds after the fixed instant, on both clocks.
pub(crate) fn at(ms: u64) -> Now {
    Now {
        mono: 5_000 + ms,
        wall: WRITTEN + i64::try_from(ms).expect("a time"),
    }
}

#[test]
fn only_messages_are_taken_and_each_once() {
    let mut desk = Desk::new(&["claude"]);
    for file in [
        "a.yaml",
        "b.yml",
        "c.json",
        "d.txt",
        ".e.yaml",
        "f.yaml.tmp",
        "g.tmp",
        "h",
    ] {
        desk.write(&format!("claude/outbox/{file}"), "text", 0);
    }
    desk.scan();
    desk.scan();
    let found = desk.take_all(at(QUIET));
    let names: Vec<String> = found.iter().map(|found| found.file.to_string()).collect();
    assert_eq!(names, ["a.yaml", "b.yml", "c.json"]);
    let Body::Message { bytes, digest } = &found[0].body else {
        panic!("{:?}", found[0])
    };
    assert_eq!(
        (bytes.as_slice(), *digest),
        (&b"text"[..], spool::Digest::of(b"text"))
    );
    assert_eq!(desk.intake.next_wakeup(), None);
}

#[test]
fn a_file_that_was_still_for_long_is_taken_at_once_and_a_young_one_after_a_while() {
    let mut desk = Desk::new(&["claude"]);
    desk.write("claude/outbox/old.yaml", "text", -50);
    desk.write("claude/outbox/young.yaml", "text", -49);
    desk.scan();
    assert_eq!(desk.take(at(0)), ["old.yaml"]);
    assert_eq!(desk.intake.next_wakeup(), Some(at(QUIET).mono));
    assert!(
        desk.take(Now {
            wall: WRITTEN,
            ..at(QUIET - 1)
        })
        .is_empty()
    );
    assert_eq!(
        desk.take(Now {
            wall: WRITTEN,
            ..at(QUIET)
        }),
        ["young.yaml"]
    );
}

#[test]
fn a_file_from_the_future_is_taken_after_two_equal_looks() {
    let mut desk = Desk::new(&["claude"]);
    desk.write("claude/outbox/a.yaml", "text", 3_600_000);
    desk.scan();
    assert!(desk.take(at(0)).is_empty());
    desk.write("claude/outbox/a.yaml", "text and more", 3_600_000);
    assert!(
        desk.take(at(QUIET)).is_empty(),
        "it changed between the looks"
    );
    assert_eq!(desk.take(at(2 * QUIET)), ["a.yaml"]);
}

#[test]
fn a_hint_that_it_is_finished_makes_it_ready_at_once() {
    let mut desk = Desk::new(&["claude"]);
    desk.write("claude/outbox/a.yaml", "text", 0);
    desk.intake.hint("claude", &name("a.yaml"));
    desk.intake.hint("claude", &name(".b.yaml"));
    desk.intake.hint("../claude", &name("b.yaml"));
    assert_eq!(desk.intake.next_wakeup(), Some(0));
    let found = desk.take_all(at(0));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].stamp.fresh,
        "a change in the same instant would not show"
    );
}

/// Opens a file for writing, as a writer left it before a start, and dates it.
fn open(desk: &Desk, path: &str, text: &str, ms: i64) -> std::fs::File {
    desk.write(path, text, ms);
    std::fs::File::options()
        .append(true)
        .open(desk.workspace.path(&format!("agents/{path}")))
        .expect("the file")
}

#[test]
fn a_file_that_a_writer_has_open_is_waited_for_without_any_hint() {
    let mut desk = Desk::new(&["claude"]);
    let writer = open(&desk, "claude/outbox/a.yaml", "te", 0);
    let stuck = open(&desk, "claude/outbox/b.yaml", "te", 0);
    desk.scan();
    assert!(desk.take(at(QUIET)).is_empty());
    assert_eq!(
        desk.intake.next_wakeup(),
        Some(at(QUIET + 250).mono),
        "the kernel is asked again"
    );
    assert!(desk.take(at(4_000)).is_empty());
    drop(writer);
    let found = desk.take_all(at(4_250));
    assert_eq!(found.len(), 1);
    assert!(!found[0].may_grow, "nobody has it open");
    assert!(desk.take(at(29_999)).is_empty());
    let found = desk.take_all(at(30_000 + QUIET));
    assert_eq!(
        found.len(),
        1,
        "a writer that never ends holds nothing up forever"
    );
    assert!(found[0].may_grow);
    drop(stuck);
}

#[test]
fn a_file_that_its_writer_has_open_is_not_finished_because_another_closed_or_renamed_it() {
    let mut desk = Desk::new(&["claude"]);
    let writer = open(&desk, "claude/outbox/a.yaml", "te", 0);
    desk.intake.hint("claude", &name("a.yaml"));
    assert!(desk.take(at(100)).is_empty());
    assert!(desk.take(at(20_000)).is_empty());
    drop(writer);
    desk.intake.hint("claude", &name("a.yaml"));
    let found = desk.take_all(at(20_001));
    assert!(found.len() == 1 && !found[0].may_grow);
}

#[test]
fn a_listing_stops_after_any_name_and_finds_everything_that_was_there() {
    let mut desk = Desk::new(&["claude", "gemini"]);
    for number in 0..500 {
        desk.write(&format!("gemini/outbox/junk-{number}"), "", 0);
    }
    desk.write("gemini/outbox/b.yaml", "b", 1);
    desk.write("gemini/outbox/a.yaml", "a", 2);
    desk.write("gemini/outbox/hinted.yaml", "h", 3);
    let listing = desk.intake.list(&desk.spool.view(), "gemini");
    let mut listing = listing.expect("no error").expect("an outbox");
    let mut taken = Vec::new();
    let mut slices = 1;
    while !desk
        .intake
        .list_on(&desk.spool.view(), &mut listing, &mut || true)
        .expect("a slice")
    {
        slices += 1;
        if slices == 100 {
            desk.intake.hint("gemini", &name("hinted.yaml"));
            assert_eq!(desk.take(at(100)), ["hinted.yaml"], "between two slices");
            std::fs::remove_file(desk.workspace.path("agents/gemini/outbox/hinted.yaml"))
                .expect("the file is put away");
        }
        taken.extend(desk.take(at(100)));
    }
    assert!(slices > 500, "one name each, and one look: {slices}");
    assert!(taken.is_empty(), "the order is known at the end only");
    assert_eq!(desk.take(at(100)), ["b.yaml", "a.yaml"], "the oldest first");
}

#[test]
fn a_crowd_of_files_that_writers_have_open_is_asked_about_in_turn() {
    let mut desk = Desk::new(&["claude", "gemini"]);
    let crowd: Vec<std::fs::File> = (0..400)
        .map(|number| open(&desk, &format!("gemini/outbox/{number}.yaml"), "", 0))
        .collect();
    desk.scan();
    desk.disk.set(None);
    let mut ms = QUIET;
    while ms < 10_000 {
        assert!(desk.take(at(ms)).is_empty());
        ms += 5;
    }
    // One question every 10 ms, and a look is a few calls.
    let looks = desk.disk.looks();
    assert!(looks < 8_000, "{looks} calls in 10 s about files at rest");
    assert!(looks > 400, "every file is asked about");

    desk.write("claude/outbox/q.yaml", "q", 0);
    desk.scan();
    assert_eq!(desk.take(at(ms)), ["q.yaml"], "others do not wait");
    drop(crowd);
    desk.intake.hint("gemini", &name("7.yaml"));
    assert!(desk.take(at(ms + 10)).contains(&"7.yaml".to_owned()));
}

#[test]
fn a_file_whose_writers_nobody_can_tell_needs_two_seconds_of_stillness() {
    let mut desk = Desk::new(&["claude"]);
    desk.disk.hide_writers();
    desk.write("claude/outbox/a.yaml", "te", 0);
    desk.write("claude/outbox/old.yaml", "text", -70_000);
    desk.write("claude/outbox/seen.yaml", "text", 0);
    desk.intake.hint("claude", &name("seen.yaml"));
    desk.scan();
    let found = desk.take_all(at(QUIET));
    let names: Vec<_> = found.iter().map(|found| found.file.to_string()).collect();
    assert_eq!(names, ["seen.yaml", "old.yaml"]);
    let may_grow: Vec<bool> = found.iter().map(|found| found.may_grow).collect();
    assert_eq!(
        may_grow,
        [true, false],
        "another than its writer may have closed it"
    );
    desk.write("claude/outbox/a.yaml", "text", 1_500);
    assert!(desk.take(at(2_050)).is_empty());
    assert!(desk.take(at(4_049)).is_empty());
    let found = desk.take_all(at(4_050));
    assert!(found.len() == 1 && found[0].may_grow);
}

#[test]
fn a_clock_that_is_set_makes_no_file_older_than_it_is() {
    const HOUR: i64 = 3_600_000;
    for set in [HOUR, -HOUR] {
        let mut desk = Desk::new(&["claude"]);
        desk.disk.hide_writers();
        let later = |ms: u64| Now {
            mono: at(ms).mono,
            wall: at(ms).wall + set,
        };
        assert!(desk.take(at(0)).is_empty());
        // One file from before the clock is set, whose writer has more to write, and one from after it.
        desk.write("claude/outbox/before.yaml", "te", 900);
        desk.write("claude/outbox/after.yaml", "te", 1_100 + set);
        desk.scan();
        assert!(desk.take(later(1_200)).is_empty(), "set by {set}");
        desk.write("claude/outbox/before.yaml", "text", 2_000 + set);
        // Where the kernel does not report writers, two quiet seconds suffice.
        let mut taken = Vec::new();
        for ms in (0..60).map(|n| 2_050 + 100 * n) {
            taken.extend(desk.take(later(ms)).into_iter().map(|name| (name, ms)));
        }
        let [(first, at_first), (second, at_second)] = &taken[..] else {
            panic!("set by {set}: {taken:?}");
        };
        assert_eq!([first, second], ["after.yaml", "before.yaml"]);
        assert!((3_100..4_000).contains(at_first), "{taken:?}");
        assert!((4_000..6_500).contains(at_second), "{taken:?}");
        // After a minute the wall clock counts again.
        desk.write("claude/outbox/old.yaml", "text", 60_000 + set);
        desk.scan();
        let taken = desk.take(later(65_000));
        assert!(taken.iter().any(|name| name == "old.yaml"), "set by {set}");
    }
}

#[test]
fn a_file_given_time_comes_back_when_it_changed_or_at_its_time() {
    let mut desk = Desk::new(&["claude"]);
    desk.write("claude/outbox/empty.yaml", "", -1_000);
    desk.write("claude/outbox/cut.yaml", "te", -900);
    desk.scan();
    let found = desk.take_all(at(0));
    for found in &found {
        desk.intake.give_time(found, at(5_000).mono);
    }
    assert_eq!(desk.intake.next_wakeup(), Some(at(5_000).mono));
    desk.scan();
    assert!(desk.take(at(1_000)).is_empty());
    desk.write("claude/outbox/cut.yaml", "text", 1_500);
    desk.scan();
    assert_eq!(desk.take(at(2_000)), ["cut.yaml"]);
    assert!(desk.take(at(4_999)).is_empty());
    assert_eq!(desk.take(at(5_000)), ["empty.yaml"]);
}

#[test]
fn a_file_given_time_whose_writer_is_at_work_again_is_left_alone() {
    let mut desk = Desk::new(&["claude"]);
    desk.write("claude/outbox/cut.yaml", "te", -900);
    desk.scan();
    let found = desk.take_all(at(0));
    desk.intake.give_time(&found[0], at(5_000).mono);
    desk.write("claude/outbox/cut.yaml", "tex", 1_990);
    desk.scan();
    assert!(desk.take(at(2_000)).is_empty(), "10 ms ago it grew");
    assert_eq!(desk.take(at(2_050)), ["cut.yaml"]);
}

#[test]
fn what_is_no_plain_file_is_unfit_and_never_opened() {
    let mut desk = Desk::new(&["claude"]);
    let outbox = desk.workspace.path("agents/claude/outbox");
    desk.write("claude/outbox/target", "text", 0);
    symlink("target", outbox.join("link.yaml")).expect("a link");
    std::fs::create_dir(outbox.join("directory.yaml")).expect("a directory");
    make_fifo(&outbox.join("fifo.yaml"));
    let _socket =
        std::os::unix::net::UnixListener::bind(outbox.join("socket.yaml")).expect("a socket");
    desk.write("claude/outbox/large.yaml", &"x".repeat(1001), 0);
    desk.write("claude/outbox/limit.yaml", &"x".repeat(1000), 0);
    desk.scan();
    let mut found: Vec<(String, Option<Unfit>)> = desk
        .take_all(LATER)
        .into_iter()
        .map(|found| match found.body {
            Body::Unfit(unfit) => (found.file.to_string(), Some(unfit)),
            Body::Message { .. } => (found.file.to_string(), None),
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = [
        ("directory.yaml", Some(Unfit::Directory)),
        ("fifo.yaml", Some(Unfit::Special)),
        ("large.yaml", Some(Unfit::TooLarge(1001))),
        ("limit.yaml", None),
        ("link.yaml", Some(Unfit::Symlink)),
        ("socket.yaml", Some(Unfit::Special)),
    ];
    assert_eq!(
        found,
        expected.map(|(file, unfit)| (file.to_owned(), unfit))
    );
}

#[test]
fn a_second_name_is_tolerated_for_two_seconds() {
    let mut desk = Desk::new(&["claude"]);
    let outbox = desk.workspace.path("agents/claude/outbox");
    for file in ["a", "b"] {
        desk.write(&format!("claude/outbox/{file}"), "text", -100_000);
        std::fs::hard_link(outbox.join(file), outbox.join(format!("{file}.yaml"))).expect("a link");
    }
    desk.scan();
    assert!(desk.take(at(0)).is_empty());
    std::fs::remove_file(outbox.join("a")).expect("a file");
    assert_eq!(desk.intake.next_wakeup(), Some(at(2_000).mono));
    assert!(desk.take(at(1_999)).is_empty());
    let found = desk.take_all(at(2_000));
    assert!(matches!(found[0].body, Body::Message { .. }));
    assert_eq!(found[1].body, Body::Unfit(Unfit::HardLink));
}

#[test]
fn outboxes_take_turns_and_the_oldest_file_of_each_comes_first() {
    let mut desk = Desk::new(&["a", "b", "c"]);
    for n in 0..50 {
        desk.write(&format!("a/outbox/{n:02}.yaml"), "text", -1_000 - n);
    }
    desk.write("b/outbox/b1.yaml", "text", -3);
    desk.write("b/outbox/b2.yaml", "text", -4);
    desk.write("c/outbox/c1.yaml", "text", -500);
    desk.scan();
    let later = at(QUIET);
    let batch = |desk: &mut Desk| {
        let mut taken = Vec::new();
        for found in desk.intake.take(&desk.spool.view(), later, 4).found {
            // Put the judged file away.
            let path = desk
                .workspace
                .path(&format!("agents/{}/outbox/{}", found.agent, found.file));
            std::fs::remove_file(path).expect("a file");
            taken.push(format!("{}/{}", found.agent, found.file));
        }
        taken
    };
    assert_eq!(
        batch(&mut desk),
        ["a/49.yaml", "b/b2.yaml", "c/c1.yaml", "a/48.yaml"]
    );
    assert_eq!(
        batch(&mut desk),
        ["b/b1.yaml", "a/47.yaml", "a/46.yaml", "a/45.yaml"]
    );
    desk.write("b/outbox/b3.yaml", "text", -4);
    desk.scan();
    assert_eq!(
        batch(&mut desk),
        ["b/b3.yaml", "a/44.yaml", "a/43.yaml", "a/42.yaml"]
    );
}

#[test]
fn young_files_are_taken_the_oldest_first_whatever_their_names() {
    let mut desk = Desk::new(&["claude"]);
    desk.write("claude/outbox/a.yaml", "text", -1);
    desk.write("claude/outbox/b.yaml", "text", -3);
    desk.write("claude/outbox/c.yaml", "text", -2);
    desk.write("claude/outbox/d.yaml", "text", -3);
    desk.scan();
    assert_eq!(desk.take(at(0)), [""; 0]);
    let in_order = ["b.yaml", "d.yaml", "c.yaml", "a.yaml"];
    assert_eq!(desk.take(at(QUIET)), in_order);
}

#[test]
fn files_and_outboxes_that_vanish_are_forgotten() {
    let mut desk = Desk::new(&["claude", "codex"]);
    desk.write("claude/outbox/a.yaml", "text", 0);
    desk.write("codex/outbox/b.yaml", "text", 0);
    desk.scan();
    std::fs::remove_file(desk.workspace.path("agents/claude/outbox/a.yaml")).expect("a file");
    std::fs::remove_dir_all(desk.workspace.path("agents/codex")).expect("a directory");
    assert!(desk.take(LATER).is_empty());
    desk.scan();
    assert_eq!(desk.intake.next_wakeup(), None);
}

#[test]
fn an_outbox_that_cannot_be_read_is_trouble_and_holds_up_no_other() {
    let mut desk = Desk::new(&["claude", "codex"]);
    desk.write("codex/outbox/b.yaml", "text", 0);
    std::fs::remove_dir(desk.workspace.path("agents/claude/outbox")).expect("an outbox");
    symlink(
        "../codex/outbox",
        desk.workspace.path("agents/claude/outbox"),
    )
    .expect("a link");
    let errors = scan(&mut desk.intake, &desk.spool.view(), &desk.agents);
    assert_eq!(errors.len(), 1);
    assert_eq!(desk.take(LATER), ["b.yaml"]);
}

#[test]
fn a_mark_is_behind_what_waits_and_before_what_comes_or_waits_again() {
    let mut desk = Desk::new(&["claude"]);
    for file in ["a", "b"] {
        desk.write(&format!("claude/outbox/{file}.yaml"), "text", 0);
    }
    desk.scan();
    let mark = desk.intake.mark();
    desk.write("claude/outbox/c.yaml", "text", 1);
    desk.scan();
    let take_one = |desk: &mut Desk| {
        let mut taken = desk.intake.take(&desk.spool.view(), at(100), 1).found;
        taken.pop().expect("a file")
    };
    let a = take_one(&mut desk);
    assert!(desk.intake.has_waiting_since(mark));
    desk.intake.give_time(&a, at(200).mono);
    take_one(&mut desk);
    assert!(!desk.intake.has_waiting_since(mark));
    desk.intake.hint("claude", &a.file);
    let waits = (
        desk.intake.next_wakeup(),
        desk.intake.has_waiting_since(mark),
    );
    assert_eq!(waits, (Some(0), false));
}

#[test]
fn an_outbox_that_rests_is_left_alone_and_holds_up_no_other() {
    let mut desk = Desk::new(&["claude", "codex"]);
    desk.write("claude/outbox/a.yaml", "text", -100);
    desk.scan();
    desk.intake.rest("claude", at(300).mono);
    assert_eq!(desk.intake.next_wakeup(), Some(at(300).mono));
    assert!(desk.take(at(299)).is_empty());
    desk.write("codex/outbox/b.yaml", "text", -100);
    desk.write("claude/outbox/c.yaml", "text", -50);
    desk.intake.hint("codex", &name("b.yaml"));
    desk.intake.hint("claude", &name("c.yaml"));
    assert_eq!(desk.intake.next_wakeup(), Some(0));
    assert_eq!(desk.take(at(299)), ["b.yaml"]);
    assert_eq!(desk.intake.next_wakeup(), Some(at(300).mono));
    assert_eq!(desk.take(at(300)), ["a.yaml", "c.yaml"]);
    assert_eq!(desk.intake.next_wakeup(), None);
}

#[test]
fn after_32_looks_that_took_nothing_an_outbox_rests_and_stays_fruitless_meanwhile() {
    let mut desk = Desk::new(&["ada", "bob"]);
    for number in 0..40 {
        desk.intake
            .hint("ada", &name(&format!("gone-{number}.yaml")));
    }
    desk.write("bob/outbox/b.yaml", "text", -1_000);
    desk.intake.hint("bob", &name("b.yaml"));
    let left_at = |desk: &mut Desk, ms| (desk.take(at(ms)).len(), desk.intake.known("ada"));
    assert_eq!(left_at(&mut desk, 0), (1, 8));
    assert_eq!(desk.intake.next_wakeup(), Some(at(5).mono));
    assert_eq!(left_at(&mut desk, 4), (0, 8));
    let ada = || std::collections::BTreeSet::from(["ada".to_owned()]);
    assert_eq!(desk.intake.take_fruitless(), ada());
    assert_eq!(desk.intake.take_fruitless(), ada(), "it rests");
    assert_eq!(left_at(&mut desk, 5), (0, 0));
    assert_eq!(desk.intake.take_fruitless(), ada());
    assert!(desk.intake.take_fruitless().is_empty());
}

#[test]
fn a_look_is_fruitless_if_its_file_is_gone_or_young_or_has_to_wait() {
    let mut desk = Desk::new(&["ada", "bob", "claude", "gemini"]);
    let fruitless = |desk: &mut Desk| Vec::from_iter(desk.intake.take_fruitless());
    desk.write("claude/outbox/a.yaml", "text", 0);
    desk.write("gemini/outbox/b.yaml", "text", 0);
    desk.write("bob/outbox/young.yaml", "text", 60_000);
    desk.scan();
    desk.intake.hint("ada", &name("gone.yaml"));
    let found = desk.take_all(at(60_000));
    assert_eq!(found.len(), 2);
    assert_eq!(fruitless(&mut desk), ["ada", "bob"]);
    assert!(fruitless(&mut desk).is_empty());
    desk.intake.give_time(&found[0], at(70_000).mono);
    assert_eq!(fruitless(&mut desk), ["claude"]);
}
