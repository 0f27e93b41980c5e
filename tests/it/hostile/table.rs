//! Every writer with its outcome, in one table: the real daemon serves while all of them work in one outbox.
//! `docs/spool.md` prints the same table.

use std::path::{Path, PathBuf};

use settled_tests::mailroom::Mailroom;
use settled_tests::{names, read, repository, seed, wait};

use super::files;

/// The fate of what was written.
pub(super) enum Outcome {
    /// It arrives, with the writer's last bytes.
    Arrives,
    /// It is refused with this code.
    Refused(&'static str),
    /// It stays where it is, unread.
    LeftAlone,
}

use Outcome::{Arrives, LeftAlone, Refused};

/// One writer.
pub(super) struct Writer {
    /// Its act, for the table.
    pub(super) does: &'static str,
    /// The name of its file.
    pub(super) file: Vec<u8>,
    pub(super) outcome: Outcome,
    /// Writes into the outbox. Gets the path of its file, the text of a correct message, and a directory on
    /// another file system.
    pub(super) write: fn(&Path, &str, &Path),
}

fn writers() -> Vec<Writer> {
    let mut table = Table(Vec::new());
    table.add(
        "writes in chunks, with pauses",
        b"chunks.yaml",
        Arrives,
        files::in_chunks,
    );
    table.add(
        "`cat > file` from a pipe that pauses",
        b"cat.yaml",
        Arrives,
        files::cat_from_a_slow_pipe,
    );
    table.add(
        "an editor: swap file, backup, the file in place",
        b"vim.yaml",
        Arrives,
        files::as_an_editor,
    );
    table.add(
        "`sed -i` on a draft that was no message yet",
        b"sed.yaml",
        Arrives,
        files::sed_in_place,
    );
    table.add(
        "half a message, closed, and the rest within 5 s",
        b"half.yaml",
        Arrives,
        files::in_two_goes,
    );
    table.add(
        "an empty file, and its text within 5 s",
        b"touch.yaml",
        Arrives,
        files::touched_first,
    );
    table.add("renames it in", b"renamed.yaml", Arrives, files::renamed_in);
    table.add(
        "links it in and removes the first name",
        b"linked.yaml",
        Arrives,
        files::linked_in,
    );
    table.add(
        "`mv` from another file system",
        b"moved.yaml",
        Arrives,
        files::moved_in,
    );
    table.add(
        "`cp -p`, with the time of last year",
        b"copied.yaml",
        Arrives,
        files::copied_with_its_time,
    );
    table.add("a byte order mark", b"bom.yaml", Arrives, |at, text, _| {
        files::put(at, format!("\u{feff}{text}"));
    });
    table.add(
        "CRLF at the line ends",
        b"crlf.yaml",
        Arrives,
        |at, text, _| {
            files::put(at, text.replace('\n', "\r\n"));
        },
    );
    table.add(
        "a name with newlines",
        b"a\nb\n.yaml",
        Arrives,
        |at, text, _| files::put(at, text),
    );
    table.add(
        "a name that is not UTF-8",
        b"\xff\xfe.yaml",
        Arrives,
        |at, text, _| files::put(at, text),
    );
    table.add(
        "a name of 255 bytes",
        &files::long_name(),
        Arrives,
        |at, text, _| files::put(at, text),
    );
    table.add(
        "half a message, never finished",
        b"cut.yaml",
        Refused("yaml_syntax"),
        |at, text, _| {
            files::put_whole(
                at,
                &text.as_bytes()[..text.find("to: ").unwrap_or_default() + 2],
            );
        },
    );
    table.add(
        "an empty file",
        b"empty.yaml",
        Refused("empty"),
        |at, _, _| files::put_whole(at, b""),
    );
    table.add("a FIFO", b"fifo.yaml", Refused("not_a_file"), |at, _, _| {
        files::run("mkfifo", &[at]);
    });
    table.add(
        "a socket",
        b"socket.yaml",
        Refused("not_a_file"),
        |at, _, _| files::socket(at),
    );
    table.add(
        "a character device",
        b"char.yaml",
        Refused("not_a_file"),
        |at, _, _| {
            files::device(at, "c", "1", "5");
        },
    );
    table.add(
        "a block device",
        b"block.yaml",
        Refused("not_a_file"),
        |at, _, _| {
            files::device(at, "b", "7", "0");
        },
    );
    table.add(
        "a directory",
        b"directory.yaml",
        Refused("not_a_file"),
        |at, _, _| files::directory(at),
    );
    table.add(
        "a symbolic link to a file",
        b"link.yaml",
        Refused("not_a_file"),
        files::link_to_message,
    );
    table.add(
        "a symbolic link to a device",
        b"zero.yaml",
        Refused("not_a_file"),
        |at, _, _| {
            files::link("/dev/zero", at);
        },
    );
    table.add(
        "a symbolic link to nothing",
        b"dangling.yaml",
        Refused("not_a_file"),
        |at, _, _| {
            files::link("nowhere", at);
        },
    );
    table.add(
        "a hard link to a file elsewhere",
        b"hard.yaml",
        Refused("not_a_file"),
        files::hard_linked,
    );
    table.add(
        "a sparse file of 5 GB",
        b"sparse.yaml",
        Refused("too_large"),
        |at, _, _| files::sparse(at),
    );
    table.add(
        "256 KiB and one byte",
        b"large.yaml",
        Refused("too_large"),
        |at, _, _| {
            files::put_whole(at, &[b'a'; 262_145]);
        },
    );
    table.add(
        "NUL in the text",
        b"nul.yaml",
        Refused("nul_byte"),
        |at, text, _| {
            files::put_whole(at, text.replace('?', "\0").as_bytes());
        },
    );
    table.add(
        "UTF-16 with a byte order mark",
        b"utf16.yaml",
        Refused("not_utf8"),
        |at, text, _| {
            files::put_whole(at, &files::utf16(text));
        },
    );
    table.add(
        "UTF-16 without one",
        b"wide.yaml",
        Refused("nul_byte"),
        |at, text, _| {
            files::put_whole(at, &files::utf16(text)[2..]);
        },
    );
    table.add(
        "Latin-1",
        b"latin1.yaml",
        Refused("not_utf8"),
        |at, text, _| {
            files::put_whole(at, &[text.as_bytes(), b"  caf\xe9\n"].concat());
        },
    );
    table.add(
        "brackets 200 000 deep",
        b"deep.yaml",
        Refused("too_deep"),
        |at, _, _| {
            files::put_whole(at, &[b'['; 200_000]);
        },
    );
    table.add(
        "an alias bomb",
        b"bomb.yaml",
        Refused("yaml_feature"),
        |at, _, _| {
            files::put_whole(at, b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n");
        },
    );
    table.add(
        "40 000 keys",
        b"keys.yaml",
        Refused("too_large"),
        |at, _, _| {
            files::put_whole(
                at,
                (0..40_000)
                    .map(|n| format!("{n:x}:\n"))
                    .collect::<String>()
                    .as_bytes(),
            );
        },
    );
    table.add(
        "a scalar of 250 KiB",
        b"scalar.yaml",
        Refused("not_a_mapping"),
        |at, _, _| {
            files::put_whole(at, &[b'a'; 250_000]);
        },
    );
    for name in [
        &b".hidden.yaml"[..],
        b"a.yaml.tmp",
        b"a.yaml~",
        b".a.yaml.swp",
        b"#a.yaml#",
        b"4913",
    ] {
        table.add(
            "a name that is no message's",
            name,
            LeftAlone,
            |at, text, _| files::put(at, text),
        );
    }
    table.0
}

struct Table(Vec<Writer>);

impl Table {
    fn add(
        &mut self,
        does: &'static str,
        file: &[u8],
        outcome: Outcome,
        write: fn(&Path, &str, &Path),
    ) {
        self.0.push(Writer {
            does,
            file: file.to_vec(),
            outcome,
            write,
        });
    }
}

fn text_of(number: usize) -> String {
    seed::note(
        "question",
        &format!("q-{number}"),
        "mallory",
        "claude",
        "is this read?\nand this?\n",
    )
}

fn shown(file: &[u8]) -> std::ffi::OsString {
    std::os::unix::ffi::OsStringExt::from_vec(file.to_vec())
}

#[test]
fn every_writer_gets_what_the_table_says_and_nobody_waits_for_another() {
    let mailroom = Mailroom::new(&["mallory", "claude", "codex"]);
    let elsewhere =
        tempfile::tempdir_in("/dev/shm").expect("these tests need /dev/shm, a second file system");
    let daemon = mailroom.serve();
    let writers = writers();
    let outbox = mailroom.agent("mallory", "outbox");
    std::thread::scope(|scope| {
        for (number, writer) in writers.iter().enumerate() {
            let at = outbox.join(shown(&writer.file));
            let elsewhere = elsewhere.path();
            scope.spawn(move || (writer.write)(&at, &text_of(number), elsewhere));
        }
        // Meanwhile others write to each other as usual.
        for number in 0..20 {
            let (file, id) = (format!("{number}.yaml"), format!("c-{number}"));
            mailroom.post(
                "codex",
                &file,
                &seed::note("question", &id, "codex", "claude", "?"),
            );
            mailroom.delivered("claude", &file);
        }
    });
    for (number, writer) in writers.iter().enumerate() {
        let expect = Expected {
            mailroom: &mailroom,
            number,
            writer,
        };
        expect.comes_true();
    }
    let mut left = names(&outbox);
    left.retain(|name| !name.starts_with("sed"));
    assert_eq!(
        left,
        [
            "#a.yaml#",
            ".a.yaml.swp",
            ".hidden.yaml",
            "4913",
            "a.yaml.tmp",
            "a.yaml~",
            "vim.yaml~"
        ]
    );
    assert!(daemon.interrupt().success());
}

struct Expected<'a> {
    mailroom: &'a Mailroom,
    number: usize,
    writer: &'a Writer,
}

impl Expected<'_> {
    fn comes_true(&self) {
        let Writer {
            does,
            file,
            outcome,
            ..
        } = self.writer;
        let at = |directory: &str| self.mailroom.agent("mallory", directory).join(shown(file));
        match outcome {
            Arrives => {
                let arrived = self.mailroom.agent("claude", "inbox").join(shown(file));
                wait::until(&format!("{does}: arrives"), || arrived.exists());
                let text =
                    String::from_utf8(std::fs::read(&arrived).expect("a message")).expect("text");
                let plain = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
                assert_eq!(plain, text_of(self.number), "{does}");
                wait::until(&format!("{does}: is put away"), || at("sent").exists());
            }
            Refused(code) => {
                let stem = String::from_utf8_lossy(file)
                    .trim_end_matches(".yaml")
                    .to_owned();
                let report: PathBuf = self
                    .mailroom
                    .agent("mallory", "dead_letter")
                    .join(format!("{stem}.report.yaml"));
                wait::until(&format!("{does}: is refused"), || report.exists());
                assert!(
                    read(&report).contains(&format!("refused: {code}\n")),
                    "{does}: {}",
                    read(&report)
                );
                wait::until(&format!("{does}: is put away"), || {
                    at("dead_letter").symlink_metadata().is_ok()
                });
            }
            LeftAlone => assert!(
                at("outbox").exists(),
                "{does}: {}",
                String::from_utf8_lossy(file)
            ),
        }
    }
}

#[test]
fn the_table_is_printed_in_the_documents() {
    let page = read(repository().join("docs/spool.md"));
    for Writer { does, outcome, .. } in writers() {
        let told = match outcome {
            Arrives => "arrives".to_owned(),
            Refused(code) => format!("refused: `{code}`"),
            LeftAlone => "left alone".to_owned(),
        };
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| {does} |")));
        assert!(
            row.is_some_and(|row| row.contains(&told)),
            "docs/spool.md has no row `| {does} | {told}`: {row:?}"
        );
    }
}

/// Nobody has it open any more, so the daemon does not wait for the rest: the other half of the table's patience.
#[test]
fn what_is_cut_inside_its_body_is_a_message_and_arrives_as_it_stands() {
    let mailroom = Mailroom::new(&["mallory", "claude"]);
    let text = text_of(1);
    let cut = &text[..text.len() - 6];
    mailroom.post("mallory", "cut.yaml", cut);
    assert!(mailroom.once().status.success());
    assert_eq!(
        read(mailroom.agent("claude", "inbox").join("cut.yaml")),
        cut
    );
}
