//! The disk of the operating system and those of the crash tests give the same answers, except for the fault that a
//! test sets and for what a power cut takes away.

use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::path::Path;

use disk::{
    Arrival, Disk, DiskFault, FaultyDisk, FileStream, Handle, Notes, OpenMode, Os, VolatileDisk,
};
use tempfile::TempDir;

/// A disk with a root, and a file in it that is open for writing.
struct Stage<'a> {
    disk: &'a dyn Disk,
    path: &'a Path,
    root: Handle,
    file: Handle,
}

/// A call of the disk, and its answer as text.
type Step = (&'static str, fn(&Stage<'_>) -> io::Result<String>);

/// Every verb: first those that look, then those that change something.
const STEPS: [Step; 25] = [
    ("open root", |on| on.told(&on.disk.open_root(on.path)?)),
    ("open directory", |on| {
        on.told(&on.disk.open_dir(&on.root, Path::new("dir"))?)
    }),
    ("open a file as a directory", |on| {
        on.told(&on.disk.open_dir(&on.root, Path::new("file"))?)
    }),
    ("open beneath", |on| {
        on.told(&on.disk.open_beneath(&on.root, Path::new("dir/inner"))?)
    }),
    ("open beneath a pipe", |on| {
        on.told(&on.disk.open_beneath(&on.root, Path::new("pipe"))?)
    }),
    ("open", |on| on.told(&on.open("file", OpenMode::Read)?)),
    ("open to write", |on| {
        on.told(&on.open("file", OpenMode::Write)?)
    }),
    ("open what is not there", |on| {
        on.told(&on.open("nothing", OpenMode::Write)?)
    }),
    ("open a link", |on| {
        on.told(&on.open("link", OpenMode::Read)?)
    }),
    ("stat a link", |on| {
        let stat = on.disk.stat_at(&on.root, Path::new("link"))?;
        Ok(format!("{:?} of {}", stat.kind, stat.size))
    }),
    ("list", |on| {
        let mut names = on.disk.list(&on.root)?;
        names.sort();
        let names = names.iter().map(ToString::to_string);
        Ok(names.collect::<Vec<_>>().join(" "))
    }),
    ("count names", |on| {
        let names: io::Result<Vec<_>> = on.disk.names(&on.root)?.collect();
        Ok(names?.len().to_string())
    }),
    ("read", |on| {
        let mut bytes = [b'.'; 4];
        let taken = on.disk.read_at(&on.file, &mut bytes, 1)?;
        Ok(format!("{taken}: {}", String::from_utf8_lossy(&bytes)))
    }),
    ("ask for a writer", |on| {
        let read = Os.open(&on.root, Path::new("lone"), OpenMode::Read)?;
        Ok(format!("{:?}", on.disk.writer(&read)?))
    }),
    ("lock", |on| Ok(on.disk.lock(&on.file)?.to_string())),
    ("lock a second time", |on| {
        let other = Os.open(&on.root, Path::new("file"), OpenMode::Write)?;
        Ok(on.disk.lock(&other)?.to_string())
    }),
    ("make directory", |on| {
        done(on.disk.make_dir(&on.root, Path::new("made")))
    }),
    ("create", |on| on.told(&on.open("new", OpenMode::New)?)),
    ("write", |on| {
        Ok(on.disk.write_at(&on.file, b"123456", 2)?.to_string())
    }),
    ("truncate", |on| done(on.disk.truncate(&on.file, 7))),
    ("rename", |on| {
        let to = Os.open_dir(&on.root, Path::new("dir"))?;
        let (old, new) = (Path::new("old"), Path::new("renamed"));
        done(on.disk.rename_new(&on.root, old, &to, new))
    }),
    ("replace", |on| {
        let (old, new) = (Path::new("lone"), Path::new("over"));
        done(on.disk.rename_over(&on.root, old, new))
    }),
    ("remove", |on| {
        done(on.disk.remove(&on.root, Path::new("gone")))
    }),
    ("sync", |on| {
        on.disk.sync_data(&on.file)?;
        done(on.disk.sync_dir(&on.root))
    }),
    ("sync all", |on| {
        Ok(on.disk.sync_file_system(&on.root)?.to_string())
    }),
];

/// The answers of a disk without a fault, and the tree that it leaves.
const ANSWERS: &str = "\
open root: Directory
open directory: Directory
open a file as a directory: os error 20
open beneath: File of 5: inner
open beneath a pipe: Special
open: File of 5: first
open to write: File of 5: first
open what is not there: os error 2
open a link: os error 40
stat a link: Symlink of 4
list: dir file gone link lone old over pipe
count names: 8
read: 4: irst
ask for a writer: Absent
lock: true
lock a second time: false
make directory: done
create: File of 0: 
write: 6
truncate: done
rename: done
replace: done
remove: done
sync: done
sync all: true
dir/inner inner, dir/renamed moved, file fi12345, link -> file, made/, new , over lone, pipe
";

fn done(result: io::Result<()>) -> io::Result<String> {
    result.map(|()| "done".to_owned())
}

impl Stage<'_> {
    fn open(&self, name: &str, how: OpenMode) -> io::Result<Handle> {
        self.disk.open(&self.root, Path::new(name), how)
    }

    /// Returns the kind of an open file and, if it is a regular one, its size and content.
    fn told(&self, file: &Handle) -> io::Result<String> {
        let stat = self.disk.stat(file)?;
        if stat.kind != disk::FileKind::File {
            return Ok(format!("{:?}", stat.kind));
        }
        let mut text = String::new();
        FileStream::new(&Os, file, 0).read_to_string(&mut text)?;
        Ok(format!("{:?} of {}: {text}", stat.kind, stat.size))
    }

    /// Takes every step; returns the answers and the tree that is left.
    fn played(&self) -> String {
        let mut text = String::new();
        for (name, step) in STEPS {
            let answer = step(self).unwrap_or_else(|error| match error.raw_os_error() {
                Some(number) => format!("os error {number}"),
                None => error.to_string(),
            });
            writeln!(text, "{name}: {answer}").expect("memory");
        }
        text + &tree(self.path) + "\n"
    }
}

/// Makes the directory in which the steps are taken.
fn prepared() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir(path("dir")).expect("a directory");
    for (name, text) in [
        ("file", "first"),
        ("dir/inner", "inner"),
        ("old", "moved"),
        ("lone", "lone"),
        ("over", "over"),
        ("gone", "gone"),
    ] {
        std::fs::write(path(name), text).expect("a file");
    }
    std::os::unix::fs::symlink("file", path("link")).expect("a link");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path("pipe"),
        rustix::fs::FileType::Fifo,
        mode,
        0,
    )
    .expect("a pipe");
    directory
}

fn stage<'a>(disk: &'a dyn Disk, path: &'a Path) -> Stage<'a> {
    let root = Os.open_root(path).expect("the root");
    let file = Os.open(&root, Path::new("file"), OpenMode::Write);
    let file = file.expect("the file");
    Stage {
        disk,
        path,
        root,
        file,
    }
}

/// Lists what is in a directory, with the content of each file.
fn tree(path: &Path) -> String {
    let mut parts = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(directory) = open.pop() {
        let mut entries: Vec<_> = std::fs::read_dir(&directory)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        entries.sort();
        if entries.is_empty() && directory != path {
            parts.push((directory.clone(), "/".to_owned()));
        }
        for entry in entries {
            let kind = entry.symlink_metadata().expect("an entry").file_type();
            let what = if kind.is_dir() {
                open.push(entry);
                continue;
            } else if kind.is_symlink() {
                let to = std::fs::read_link(&entry).expect("a link");
                format!(" -> {}", to.display())
            } else if kind.is_file() {
                let bytes = std::fs::read(&entry).expect("a file");
                format!(" {}", brief(&bytes))
            } else {
                String::new()
            };
            parts.push((entry, what));
        }
    }
    parts.sort();
    let parts = parts.iter().map(|(of, what)| {
        let name = of.strip_prefix(path).expect("it is beneath");
        format!("{}{what}", name.display())
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Writes bytes as text, with a count in place of each long run of one byte.
fn brief(bytes: &[u8]) -> String {
    let runs = bytes.chunk_by(|one, other| one == other);
    let runs = runs.map(|run| match (run[0], run.len()) {
        (0, len) => format!("<{len} zeros>"),
        (byte, len @ 9..) => format!("<{len} {}>", char::from(byte)),
        _ => String::from_utf8_lossy(run).into_owned(),
    });
    runs.collect()
}

#[test]
fn every_disk_gives_the_same_answers() {
    let directory = prepared();
    assert_eq!(stage(&Os, directory.path()).played(), ANSWERS);
    let boot_id = |disk: &dyn Disk, directory: &TempDir| {
        let root = disk.open_root(directory.path()).expect("the root");
        disk.boot_id(&root).expect("a boot")
    };
    let boot = boot_id(&Os, &directory);
    assert!((16..=36).contains(&boot.len()), "{boot}");

    let directory = prepared();
    let faulty = FaultyDisk::new("a boot");
    assert_eq!(stage(&faulty, directory.path()).played(), ANSWERS);
    assert_eq!(boot_id(&faulty, &directory), "a boot");
    assert_eq!((faulty.changes(), faulty.stopped()), (10, false));

    let directory = prepared();
    // What is there at the beginning is read, and nobody writes into a pipe.
    std::fs::remove_file(directory.path().join("pipe")).expect("a pipe");
    let volatile = VolatileDisk::new(directory.path(), "a boot").expect("a disk");
    let answers = ANSWERS
        .replace(
            "open beneath a pipe: Special",
            "open beneath a pipe: os error 2",
        )
        .replace("over pipe\n", "over\n")
        .replace("names: 8", "names: 7")
        .replace(", pipe\n", "\n");
    assert_eq!(stage(&volatile, directory.path()).played(), answers);
    assert_eq!(boot_id(&volatile, &directory), "a boot");
}

/// The answers, and the tree, that differ from those of a disk without a fault.
fn differing(fault: DiskFault) -> (Vec<String>, FaultyDisk) {
    let directory = prepared();
    let disk = FaultyDisk::new("a boot");
    disk.set(Some(DiskFault::Fail(1, 5)));
    let on = stage(&disk, directory.path());
    assert!(on.open("before", OpenMode::New).is_err());
    disk.set(Some(fault));
    assert_eq!((disk.changes(), disk.looks()), (0, 0), "the counts restart");
    assert_eq!(disk.log(), [""; 0]);
    let played = on.played();
    let lines = played.lines().zip(ANSWERS.lines());
    let differing = lines.filter(|(answer, usual)| answer != usual);
    let differing = differing.map(|(answer, _)| answer.to_owned()).collect();
    (differing, disk)
}

#[test]
fn a_fault_fails_what_it_names_and_nothing_else() {
    const DEAD: &str = "the process was killed here";
    let dead = |names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("{name}: {DEAD}")).collect()
    };
    let text = |lines: &[&str]| -> Vec<String> { lines.iter().map(|&line| line.into()).collect() };
    let later = [
        "truncate", "rename", "replace", "remove", "sync", "sync all",
    ];
    let stopped = |more: &str, tree: &str| [dead(&[more]), dead(&later), text(&[tree])].concat();
    let after_write = "dir/inner inner, file fi123456, gone gone, link -> file, lone lone, made/, new , old moved, \
                       over over, pipe";
    for (fault, expected) in [
        (DiskFault::StopAfter(3), stopped("write", after_write)),
        (
            DiskFault::StopWithin(3),
            stopped("write", &after_write.replace("fi123456", "fi123")),
        ),
        (
            DiskFault::StopWithin(4),
            [dead(&later), text(&[after_write])].concat(),
        ),
        (
            DiskFault::StopAfter(4),
            [
                dead(&later),
                text(&[&after_write.replace("fi123456", "fi12345")]),
            ]
            .concat(),
        ),
        (
            DiskFault::Fail(5, 28),
            text(&[
                "rename: os error 28",
                "dir/inner inner, file fi12345, link -> file, made/, new , old moved, over lone, pipe",
            ]),
        ),
        (
            DiskFault::FailWithin(3, 28),
            text(&[
                "write: os error 28",
                "dir/inner inner, dir/renamed moved, file fi123<2 zeros>, link -> file, made/, new , over lone, pipe",
            ]),
        ),
        (
            DiskFault::FailFrom(7, 5),
            text(&[
                "remove: os error 5",
                "sync: os error 5",
                "sync all: os error 5",
                "dir/inner inner, dir/renamed moved, file fi12345, gone gone, link -> file, made/, new , over lone, \
                 pipe",
            ]),
        ),
        // Each opened file is looked at a second time.
        (
            DiskFault::FailLook(3, 13),
            text(&["open directory: os error 13"]),
        ),
        (
            DiskFault::FailLook(21, 13),
            text(&["lock: os error 13", "lock a second time: true"]),
        ),
        (
            DiskFault::Short(3),
            text(&[
                "read: 3: irs.",
                "write: 3",
                "dir/inner inner, dir/renamed moved, file fi123<2 zeros>, link -> file, made/, new , over lone, pipe",
            ]),
        ),
        (
            DiskFault::FailRename(18),
            text(&[
                "rename: os error 18",
                "dir/inner inner, file fi12345, link -> file, made/, new , old moved, over lone, pipe",
            ]),
        ),
    ] {
        let (answers, disk) = differing(fault);
        assert_eq!(answers, expected, "{fault:?}");
        let stops = matches!(fault, DiskFault::StopAfter(_) | DiskFault::StopWithin(_));
        assert_eq!(disk.stopped(), stops, "{fault:?}");
        if !stops {
            let log = "1 make made, 2 create new, 3 write , 4 truncate , 5 rename renamed, 6 replace over, \
                       7 remove gone, 8 sync ";
            let told = disk.log().join(", ");
            assert!(told.starts_with(log), "{fault:?}: {told}");
        }
    }
}

#[test]
fn a_killed_process_sees_nothing_and_hidden_writers_are_unknown() {
    let directory = prepared();
    let disk = FaultyDisk::new("a boot");
    let on = stage(&disk, directory.path());
    let root = disk.open_root(directory.path()).expect("the root");
    disk.hide_writers();
    let played = on.played();
    assert!(played.contains("ask for a writer: Unknown\n"), "{played}");

    disk.set(Some(DiskFault::StopWithin(1)));
    assert!(on.open("other", OpenMode::New).is_err());
    for (name, step) in STEPS {
        assert!(step(&on).is_err(), "{name}");
    }
    assert!(disk.boot_id(&root).is_err());
}

/// Changes a directory through a disk that forgets, in every way.
fn changed(path: &Path) -> io::Result<VolatileDisk> {
    for (name, text) in [("old", "base"), ("dir/x", "x")] {
        std::fs::create_dir_all(path.join("dir"))?;
        std::fs::write(path.join(name), text)?;
    }
    let disk = VolatileDisk::new(path, "a boot")?;
    let root = disk.open_root(path)?;
    let dir = disk.open_dir(&root, Path::new("dir"))?;
    let [a, b, old, over] = ["a", "b", "old", "over"].map(Path::new);
    let file = disk.open(&root, a, OpenMode::New)?;
    disk.write_at(&file, &[b'a'; 600], 0)?;
    disk.sync_data(&file)?;
    disk.truncate(&file, 4)?;
    disk.rename_new(&root, a, &dir, b)?;
    disk.sync_dir(&dir)?;
    disk.make_dir(&root, Path::new("made"))?;
    disk.rename_over(&root, old, over)?;
    disk.sync_file_system(&root)?;
    let file = disk.open(&root, over, OpenMode::Write)?;
    disk.write_at(&file, &[b'z'; 1_500], 2)?;
    disk.remove(&root, over)?;
    Ok(disk)
}

/// Tells what a power cut after each change may undo, and three of the trees that it may leave.
fn cuts(notes: &Notes) -> String {
    let mut text = String::new();
    for at in 0..=notes.len() {
        writeln!(text, "{at}: {:?}", notes.unsynced(at)).expect("memory");
        for arrival in [Arrival::Lost, Arrival::Whole, Arrival::Sectors(0b101)] {
            let place = tempfile::tempdir().expect("a directory");
            let restored = notes.restore(at, &|_| arrival, place.path());
            restored.expect("a tree");
            writeln!(text, "  {arrival:?}: {}", tree(place.path())).expect("memory");
        }
    }
    text
}

/// For each change: what a cut after it may undo, and the tree if all of that is lost, arrives, or arrives in part.
const CUTS: &str = "\
0: []
  Lost: dir/x x, old base
  Whole: dir/x x, old base
  Sectors(5): dir/x x, old base
1: [0]
  Lost: dir/x x, old base
  Whole: a , dir/x x, old base
  Sectors(5): a , dir/x x, old base
2: [0, 1]
  Lost: dir/x x, old base
  Whole: a <600 a>, dir/x x, old base
  Sectors(5): a <512 a><88 zeros>, dir/x x, old base
3: [0]
  Lost: dir/x x, old base
  Whole: a <600 a>, dir/x x, old base
  Sectors(5): a <600 a>, dir/x x, old base
4: [0, 3]
  Lost: dir/x x, old base
  Whole: a aaaa, dir/x x, old base
  Sectors(5): a aaaa, dir/x x, old base
5: [0, 3, 4]
  Lost: dir/x x, old base
  Whole: a aaaa, dir/b aaaa, dir/x x, old base
  Sectors(5): a aaaa, dir/b aaaa, dir/x x, old base
6: [0, 3, 4, 5]
  Lost: dir/x x, old base
  Whole: dir/b aaaa, dir/x x, old base
  Sectors(5): dir/b aaaa, dir/x x, old base
7: [0, 3, 5]
  Lost: dir/b <600 a>, dir/x x, old base
  Whole: dir/b aaaa, dir/x x, old base
  Sectors(5): dir/b aaaa, dir/x x, old base
8: [0, 3, 5, 7]
  Lost: dir/b <600 a>, dir/x x, old base
  Whole: dir/b aaaa, dir/x x, made/, old base
  Sectors(5): dir/b aaaa, dir/x x, made/, old base
9: [0, 3, 5, 7, 8]
  Lost: dir/b <600 a>, dir/x x, old base
  Whole: dir/b aaaa, dir/x x, made/, old base, over base
  Sectors(5): dir/b aaaa, dir/x x, made/, old base, over base
10: [0, 3, 5, 7, 8, 9]
  Lost: dir/b <600 a>, dir/x x, old base
  Whole: dir/b aaaa, dir/x x, made/, over base
  Sectors(5): dir/b aaaa, dir/x x, made/, over base
11: []
  Lost: dir/b aaaa, dir/x x, made/, over base
  Whole: dir/b aaaa, dir/x x, made/, over base
  Sectors(5): dir/b aaaa, dir/x x, made/, over base
12: [11]
  Lost: dir/b aaaa, dir/x x, made/, over base
  Whole: dir/b aaaa, dir/x x, made/, over ba<1500 z>
  Sectors(5): dir/b aaaa, dir/x x, made/, over ba<512 z><512 zeros><476 z>
13: [11, 12]
  Lost: dir/b aaaa, dir/x x, made/, over base
  Whole: dir/b aaaa, dir/x x, made/
  Sectors(5): dir/b aaaa, dir/x x, made/
";

#[test]
fn a_power_cut_undoes_what_was_not_synced() {
    let directory = tempfile::tempdir().expect("a directory");
    let disk = changed(directory.path()).expect("a disk");
    let notes = disk.notes();
    assert_eq!(cuts(&notes), CUTS);
    assert_eq!((notes.len(), disk.position()), (13, 13));
    assert!(!notes.is_empty());
    let sectors: Vec<_> = (0..=13)
        .filter_map(|at| Some((at, notes.sectors(at)?)))
        .collect();
    assert_eq!(sectors, [(1, 2), (11, 3)]);
    let halves: Vec<_> = (0..13)
        .filter_map(|at| Some((at, notes.other_half(at)?)))
        .collect();
    assert_eq!(halves, [(4, 5), (8, 9)]);
    let appeared = notes.appearances().into_iter();
    let appeared: Vec<_> = appeared
        .map(|(path, at)| format!("{} {at}", path.display()))
        .collect();
    assert_eq!(appeared, ["a 1", "dir/b 5", "made 8", "over 9"]);

    let before = VolatileDisk::new(directory.path(), "a boot").expect("a disk");
    assert!(before.notes().is_empty());
    let root = before.open_root(directory.path()).expect("the root");
    std::fs::write(directory.path().join("foreign"), "x").expect("a file");
    let foreign = before.open(&root, Path::new("foreign"), OpenMode::Write);
    let error = before.write_at(&foreign.expect("a file"), b"y", 0);
    let error = error.expect_err("its notes do not hold the file");
    assert!(
        error.to_string().contains("behind the disk's back"),
        "{error}"
    );
}

#[test]
fn bytes_are_written_and_read_to_the_end_in_as_few_calls_as_can_be() {
    let directory = prepared();
    let disk = FaultyDisk::new("a boot");
    let on = stage(&disk, directory.path());
    disk.set(Some(DiskFault::Short(3)));
    disk::write_all(&disk, &on.file, b"0123456789", 1).expect("written");
    assert_eq!(disk.changes(), 4);
    let content = std::fs::read(directory.path().join("file")).expect("a file");
    assert_eq!(content, b"f0123456789");
    // As many bytes as expected and room for more: that is the end. Otherwise one more call finds it.
    for (fault, hint, limit, read, looks) in [
        (None, 11, 100, 11, 1),
        (None, 12, 100, 11, 2),
        (None, 10, 100, 11, 2),
        (None, 0, 100, 11, 3),
        (None, 11, 11, 11, 1),
        (None, 5, 5, 5, 1),
        (Some(DiskFault::Short(3)), 11, 100, 11, 4),
    ] {
        disk.set(fault);
        let bytes = disk::read_up_to(&disk, &on.file, hint, limit).expect("bytes");
        assert_eq!(bytes, content[..read], "{fault:?}, {hint} of {limit}");
        assert_eq!(disk.looks(), looks, "{fault:?}, {hint} of {limit}");
    }
    // Of a file larger than expected, each call after the second reads as much as all before it.
    let content = vec![7; 8_000];
    std::fs::write(directory.path().join("file"), &content).expect("a file");
    disk.set(None);
    let bytes = disk::read_up_to(&disk, &on.file, 0, 100_000).expect("bytes");
    assert!(bytes == content);
    assert_eq!(disk.looks(), 6);
}

#[test]
fn what_is_missing_is_none_and_any_other_error_stays() {
    assert!(matches!(disk::if_there(Ok(7)), Ok(Some(7))));
    let failed = |kind: io::ErrorKind| disk::if_there::<u8>(Err(kind.into()));
    assert!(matches!(failed(io::ErrorKind::NotFound), Ok(None)));
    let other = failed(io::ErrorKind::PermissionDenied).map_err(|error| error.kind());
    assert_eq!(other, Err(io::ErrorKind::PermissionDenied));
}
