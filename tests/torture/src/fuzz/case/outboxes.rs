//! The writers' acts in their outboxes: complete files in every way, broken ones, files that stay open or are closed
//! half-written, files that are replaced, withdrawn or sent again, floods, and packets.

use std::fs::File;
use std::path::PathBuf;

use settled_tests::seed;

use super::{Hands, LATE};
use crate::fuzz::model::{Item, Verdict, Version};
use crate::fuzz::tree;

/// The longest wait for a writer with an open file, in milliseconds: if the kernel reports the writer, and if not.
const WRITER_MS: u64 = 30_000;
const UNKNOWN_MS: u64 = 2_000;

/// The time that a writer has to correct a text that breaks a rule, in milliseconds.
const SECOND_LOOK_MS: u64 = 500;

/// The number of files in a flood: more than an outbox may hold back, and more than a batch.
const FLOOD: usize = 300;

/// A file that its writer still has open, and the rest to write.
pub(super) struct Open {
    item: usize,
    file: File,
    rest: Vec<u8>,
}

/// A file that its writer closed half-written.
pub(super) struct Half {
    item: usize,
    whole: Version,
    written: usize,
}

impl Hands<'_> {
    pub(in crate::fuzz) fn outbox(&self, agent: &str, file: &str) -> PathBuf {
        self.root
            .join("agents")
            .join(agent)
            .join("outbox")
            .join(file)
    }

    /// A correct message outside the reviews, not written yet.
    fn note_message(&mut self) -> (&'static str, Version) {
        let (mut from, to) = self.two_agents();
        if self.agents.contains(&LATE) && self.dice.roll(6) == 0 {
            from = LATE;
        }
        let id = format!("note-{}", self.next_number());
        let length = self.dice.below(40);
        let text = seed::note(
            "notification",
            &id,
            from,
            to,
            &("a line of it\n".repeat(length) + &id),
        );
        (
            from,
            self.version(&id, to, text.into_bytes(), Verdict::Good),
        )
    }

    pub(in crate::fuzz) fn version(
        &self,
        id: &str,
        to: &'static str,
        bytes: Vec<u8>,
        verdict: Verdict,
    ) -> Version {
        Version {
            id: id.to_owned(),
            to: vec![to],
            bytes,
            verdict,
            from: self.now(),
            until: u64::MAX,
            packet: None,
        }
    }

    pub(in crate::fuzz) fn add(
        &mut self,
        agent: &'static str,
        file: &str,
        version: Version,
    ) -> usize {
        self.items.push(Item {
            agent,
            file: file.to_owned(),
            versions: vec![version],
            is_withdrawn: false,
            is_unfit: false,
            was_open: false,
        });
        self.items.len() - 1
    }

    pub(in crate::fuzz) fn file_name(&mut self) -> String {
        let number = self.next_number();
        let ending = ["yaml", "yml", "json"][self.dice.below(3)];
        // Some names sort before, and some after, those of other writers.
        let first = ["a", "m", "z"][self.dice.below(3)];
        format!("{first}-{number}.{ending}")
    }

    /// Writes a complete file into an outbox in one of the writers' ways.
    pub(in crate::fuzz) fn put(
        &mut self,
        agent: &'static str,
        file: &str,
        version: Version,
    ) -> usize {
        let path = self.outbox(agent, file);
        let at = self.served.time.of_day();
        let way = self.dice.roll(5);
        match way {
            0 | 1 => tree::write(&path, &version.bytes, at),
            2 | 3 => tree::rename_in(&path, &version.bytes, at),
            _ => {
                let part = tree::beside(&path);
                tree::write(&part, &version.bytes, at);
                std::fs::hard_link(&part, &path).expect("a link can be made");
                std::fs::remove_file(&part).expect("the first name");
            }
        }
        if self.dice.roll(40) == 0 {
            let file = File::options()
                .append(true)
                .open(&path)
                .expect("it was just made");
            tree::stamp(&file, at + chrono::TimeDelta::days(400));
        }
        // A link tells no watcher that its file is finished.
        if way < 4 {
            self.hint(agent, file);
        }
        self.note(&format!(
            "{agent} writes {file}, way {way}, {} bytes, {:?}",
            version.bytes.len(),
            version.verdict
        ));
        self.add(agent, file, version)
    }

    /// Passes on an event, unless the watcher loses it.
    fn hint(&mut self, agent: &str, file: &str) {
        if self.has_watcher && self.dice.roll(5) > 0 {
            self.served.hint(agent, file);
        }
    }

    pub(super) fn write_whole(&mut self) {
        let (from, version) = self.note_message();
        let file = self.file_name();
        self.put(from, &file, version);
    }

    /// Makes an entry that is not a file to read.
    pub(super) fn write_unfit(&mut self) {
        let (from, version) = self.note_message();
        let file = self.file_name();
        let path = self.outbox(from, &file);
        let way = self.dice.roll(5);
        match way {
            0 => std::os::unix::fs::symlink("/etc/hostname", &path).expect("a link"),
            1 => std::os::unix::fs::symlink("nowhere", &path).expect("a link"),
            2 => {
                std::fs::create_dir_all(path.join("deep/deeper")).expect("a directory");
                settled_tests::write(path.join("deep/a.yaml"), "id: x\n");
            }
            3 => {
                let mode = rustix::fs::Mode::from_raw_mode(0o644);
                rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
                    .expect("a FIFO");
            }
            _ => {
                // A hard link to a file elsewhere that holds a correct message.
                let number = self.next_number();
                let other = self.root.join("elsewhere").join(format!("{number}.yaml"));
                tree::write(&other, &version.bytes, self.served.time.of_day());
                std::fs::hard_link(other, &path).expect("a link");
            }
        }
        self.note(&format!("{from} makes {file}, unfit {way}"));
        let verdict = Verdict::Bad;
        let item = self.add(from, &file, Version { verdict, ..version });
        self.items[item].is_unfit = true;
    }

    /// Writes a text that breaks a rule, or one that is changed at random.
    pub(super) fn write_broken(&mut self) {
        let (from, version) = self.note_message();
        let text = String::from_utf8(version.bytes.clone()).expect("made of letters");
        let to = version.to[0];
        let (bytes, verdict) = match self.dice.roll(10) {
            0 => (
                text.replace(&format!("from: {from}"), "from: somebody")
                    .into_bytes(),
                Verdict::Bad,
            ),
            1 => (
                text.replace("priority: P2", "priority: urgent")
                    .into_bytes(),
                Verdict::Bad,
            ),
            2 => (
                text.replace(&format!("to: {to}"), "to: nobody")
                    .into_bytes(),
                Verdict::Bad,
            ),
            3 => (b"x".to_vec(), Verdict::Bad),
            4 => (
                text.replace("subject:", "to: ben\nsubject:").into_bytes(),
                Verdict::Bad,
            ),
            5 => (vec![b'['; 5_000], Verdict::Bad),
            6 => (vec![b'a'; 262_145], Verdict::Bad),
            7 => (
                text.replace("body:", "colour: blue\nbody:").into_bytes(),
                Verdict::Bad,
            ),
            _ => (self.mutate(text.into_bytes()), Verdict::Any),
        };
        let file = self.file_name();
        let item = self.put(
            from,
            &file,
            Version {
                bytes,
                verdict,
                ..version
            },
        );
        let item = &mut self.items[item];
        // The daemon does not read it, so its record has another digest, or none.
        item.is_unfit = item.last().bytes.len() > 262_144;
    }

    fn mutate(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        for _ in 0..=self.dice.roll(4) {
            if bytes.is_empty() {
                break;
            }
            let at = self.dice.below(bytes.len());
            match self.dice.roll(4) {
                0 => bytes[at] = u8::try_from(self.dice.roll(256)).expect("a byte"),
                1 => bytes.insert(at, b"\n :-\"'#{[&*!|>%@\t\0"[self.dice.below(18)]),
                2 => drop(bytes.remove(at)),
                _ => bytes.truncate(at + 1),
            }
        }
        bytes
    }

    /// The time from which the daemon may take a file that its writer has open.
    fn open_until(&self) -> u64 {
        let patience = if self.hides_writers {
            UNKNOWN_MS
        } else {
            WRITER_MS
        };
        self.now() + patience
    }

    /// Begins a file and leaves it open.
    pub(super) fn begin_open(&mut self) {
        let (from, whole) = self.note_message();
        let file = self.file_name();
        let written = self.dice.below(whole.bytes.len());
        let (head, rest) = whole.bytes.split_at(written);
        let (head, rest) = (head.to_vec(), rest.to_vec());
        let handle = tree::begin(&self.outbox(from, &file), &head, self.served.time.of_day());
        self.note(&format!(
            "{from} begins {file}, {written} bytes, and has it open"
        ));
        let head = Version {
            bytes: head,
            verdict: Verdict::Any,
            from: self.open_until(),
            ..whole
        };
        let item = self.add(from, &file, head);
        self.items[item].was_open = true;
        self.open.push(Open {
            item,
            file: handle,
            rest,
        });
    }

    /// Writes more into an open file, and perhaps closes it.
    pub(super) fn go_on_open(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let at = self.dice.below(self.open.len());
        let is_last = self.dice.roll(2) == 0;
        self.go_on(at, is_last);
    }

    pub(super) fn go_on(&mut self, at: usize, is_last: bool) {
        let (now, of_day, from) = (self.now(), self.served.time.of_day(), self.open_until());
        let length = self.open[at].rest.len();
        let more = if is_last {
            length
        } else {
            self.dice.below(length + 1)
        };
        let open = &mut self.open[at];
        let more: Vec<u8> = open.rest.drain(..more).collect();
        if !more.is_empty() {
            tree::append(&mut open.file, &more, of_day);
        }
        let (item, is_whole) = (open.item, open.rest.is_empty());
        let before = self.items[item].last().clone();
        let version = Version {
            bytes: [before.bytes.clone(), more].concat(),
            verdict: if is_whole {
                Verdict::Good
            } else {
                Verdict::Any
            },
            from: if is_last { now } else { from },
            until: u64::MAX,
            ..before
        };
        let (agent, file) = (self.items[item].agent, self.items[item].file.clone());
        if version.bytes == before.bytes {
            let last = self.items[item].versions.last_mut().expect("it has one");
            last.from = if is_last {
                last.from.min(now)
            } else {
                last.from
            };
            last.verdict = version.verdict;
        } else {
            self.items[item].change(now, version);
        }
        if is_last {
            drop(self.open.remove(at));
        }
        // A watcher reports only files that are still in the outbox.
        if is_last && self.outbox(agent, &file).exists() {
            self.hint(agent, &file);
        }
        self.note(&format!(
            "{agent} goes on with {file}, to its end: {is_last}"
        ));
    }

    /// Writes a part of a message, perhaps none of it, and closes it.
    pub(super) fn write_half(&mut self) {
        let (from, whole) = self.note_message();
        let file = self.file_name();
        let body = whole
            .bytes
            .windows(6)
            .position(|bytes| bytes == b"\nbody:")
            .expect("it has a body");
        let written = if self.dice.roll(4) == 0 {
            0
        } else {
            self.dice.below(whole.bytes.len())
        };
        let is_cut = written <= body;
        let head = Version {
            bytes: whole.bytes[..written].to_vec(),
            verdict: if is_cut { Verdict::Bad } else { Verdict::Any },
            from: if is_cut {
                self.now() + SECOND_LOOK_MS
            } else {
                self.now()
            },
            ..whole.clone()
        };
        tree::write(
            &self.outbox(from, &file),
            &head.bytes,
            self.served.time.of_day(),
        );
        self.hint(from, &file);
        self.note(&format!(
            "{from} writes {written} bytes of {file} and closes it"
        ));
        let item = self.add(from, &file, head);
        self.halves.push(Half {
            item,
            whole,
            written,
        });
    }

    /// Reopens a file that was closed half-written and appends the rest, or makes a new one if it is gone.
    pub(super) fn go_on_half(&mut self) {
        if self.halves.is_empty() {
            return;
        }
        let half = self.halves.swap_remove(self.dice.below(self.halves.len()));
        let (agent, file) = (
            self.items[half.item].agent,
            self.items[half.item].file.clone(),
        );
        let (path, at) = (self.outbox(agent, &file), self.served.time.of_day());
        match tree::reopen(&path) {
            Some(mut handle) => tree::append(&mut handle, &half.whole.bytes[half.written..], at),
            None => tree::write(&path, &half.whole.bytes, at),
        }
        let now = self.now();
        let whole = Version {
            from: now,
            ..half.whole
        };
        self.items[half.item].change(now, whole);
        self.hint(agent, &file);
        self.note(&format!("{agent} completes {file}"));
    }

    /// Picks an item whose file is in its outbox, complete, and belongs to no review.
    fn some_waiting(&mut self) -> Option<usize> {
        let busy: Vec<usize> = self
            .open
            .iter()
            .map(|open| open.item)
            .chain(self.halves.iter().map(|half| half.item))
            .collect();
        let fits = |(n, item): &(usize, &Item)| {
            let is_note =
                item.last().id.starts_with("note-") && !item.is_unfit && !item.is_withdrawn;
            is_note
                && !busy.contains(n)
                && !item.was_open
                && self.outbox(item.agent, &item.file).is_file()
        };
        let waiting: Vec<usize> = self
            .items
            .iter()
            .enumerate()
            .filter(fits)
            .map(|(n, _)| n)
            .collect();
        (!waiting.is_empty()).then(|| waiting[self.dice.below(waiting.len())])
    }

    /// Replaces a file that was not judged yet by another message.
    pub(super) fn replace(&mut self) {
        let Some(item) = self.some_waiting() else {
            return self.write_whole();
        };
        let (agent, file) = (self.items[item].agent, self.items[item].file.clone());
        let to = self.items[item].last().to[0];
        let is_same_id = self.dice.roll(3) == 0;
        let id = if is_same_id {
            self.items[item].last().id.clone()
        } else {
            format!("note-{}", self.next_number())
        };
        let text = seed::note("question", &id, agent, to, "instead of the one before");
        let version = self.version(&id, to, text.into_bytes(), Verdict::Good);
        tree::rename_in(
            &self.outbox(agent, &file),
            &version.bytes,
            self.served.time.of_day(),
        );
        self.hint(agent, &file);
        self.note(&format!("{agent} replaces {file}, same id: {is_same_id}"));
        let now = self.now();
        self.items[item].change(now, version);
    }

    /// Removes a file that was not judged yet.
    pub(super) fn remove(&mut self) {
        let Some(item) = self.some_waiting() else {
            return;
        };
        let (agent, file) = (self.items[item].agent, self.items[item].file.clone());
        std::fs::remove_file(self.outbox(agent, &file)).expect("it is there");
        self.items[item].is_withdrawn = true;
        self.note(&format!("{agent} removes {file}"));
    }

    /// Repeats an earlier message, word for word or only with its id.
    pub(super) fn repeat(&mut self) {
        let notes: Vec<usize> = (0..self.items.len())
            .filter(|n| {
                let item = &self.items[*n];
                item.last().verdict == Verdict::Good
                    && item.last().id.starts_with("note-")
                    && !item.is_withdrawn
                    && !item.is_unfit
            })
            .collect();
        if notes.is_empty() {
            return;
        }
        let item = &self.items[notes[self.dice.below(notes.len())]];
        let (agent, mut version) = (item.agent, item.last().clone());
        (version.from, version.until) = (self.now(), u64::MAX);
        if self.dice.roll(3) == 0 {
            version.bytes.extend_from_slice(b"  and one line more\n");
        }
        let file = self.file_name();
        self.put(agent, &file, version);
    }

    /// Writes many files at once: of one byte, or of feedback whose packets never come.
    pub(super) fn flood(&mut self) {
        let (from, to) = self.two_agents();
        // Earlier files are judged before; later ones may have to wait, or find no room.
        self.work(3_000);
        self.flooded.insert(from, self.now());
        let is_held = self.dice.roll(2) == 0;
        self.note(&format!("{from} floods its outbox, held: {is_held}"));
        for _ in 0..FLOOD {
            let number = self.next_number();
            let (id, file) = (format!("flood-{number}"), format!("flood-{number}.yaml"));
            let text = if is_held {
                let body = format!(
                    "findings_packet: packets/findings/none-{number}.yaml\nround: 1\nblocking_count: 0\n"
                );
                seed::review_message("review_feedback", &id, from, to, "1", &body)
            } else {
                "x".to_owned()
            };
            let version = self.version(&id, to, text.into_bytes(), Verdict::Bad);
            tree::write(
                &self.outbox(from, &file),
                &version.bytes,
                self.served.time.of_day(),
            );
            self.add(from, &file, version);
        }
    }

    /// Writes a packet into its folder.
    pub(in crate::fuzz) fn lay_packet(&mut self, file: &str, text: &str) {
        let path = self.root.join("packets/findings").join(file);
        let at = self.served.time.of_day();
        if self.dice.roll(2) == 0 {
            tree::write(&path, text.as_bytes(), at);
        } else {
            tree::rename_in(&path, text.as_bytes(), at);
        }
        if self.has_watcher && self.dice.roll(5) > 0 {
            self.served.hint_packet(file);
        }
        self.packets.push(file.to_owned());
        self.note(&format!("the packet {file}"));
    }
}
