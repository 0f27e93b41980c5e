//! The ways in which writers make a file.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use settled_tests::wait;

/// A writer's pause: longer than a finished file has to be unchanged.
const PAUSE: Duration = Duration::from_millis(150);

/// The longest name a file can have, in bytes.
const NAME_MAX: usize = 255;

pub(super) fn long_name() -> Vec<u8> {
    let ending = b".yaml";
    [&vec![b'n'; NAME_MAX - ending.len()], &ending[..]].concat()
}

pub(super) fn put(at: &Path, text: impl AsRef<[u8]>) {
    std::fs::write(at, text).expect("a file to write");
}

/// Writes a file elsewhere and renames it in, so that it is whole from the first look.
pub(super) fn put_whole(at: &Path, bytes: &[u8]) {
    let first = at.with_extension("part");
    put(&first, bytes);
    std::fs::rename(first, at).expect("a rename");
}

pub(super) fn in_chunks(at: &Path, text: &str, _: &Path) {
    let mut file = File::create(at).expect("a file to write");
    for chunk in text.as_bytes().chunks(text.len() / 5 + 1) {
        file.write_all(chunk).expect("room");
        wait::a_moment(PAUSE);
    }
}

pub(super) fn cat_from_a_slow_pipe(at: &Path, text: &str, _: &Path) {
    let mut cat = Command::new("sh")
        .args(["-c", "cat > \"$0\""])
        .arg(at)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh can be run");
    let mut pipe = cat.stdin.take().expect("it is piped");
    for chunk in text.as_bytes().chunks(text.len() / 3 + 1) {
        wait::a_moment(PAUSE);
        pipe.write_all(chunk).expect("cat reads");
    }
    drop(pipe);
    assert!(cat.wait().expect("it is our child").success());
}

/// Writes like vim: a swap file, a file to probe the directory, the old text as a backup.
pub(super) fn as_an_editor(at: &Path, text: &str, _: &Path) {
    let swap = at.with_file_name(".vim.yaml.swp");
    put(&swap, "swap");
    put(
        at.with_file_name("vim.yaml~").as_path(),
        "what it was before",
    );
    let mut file = File::create(at).expect("a file to write");
    file.write_all(text.as_bytes()).expect("room");
    file.sync_all().expect("a sync");
    std::fs::remove_file(swap).expect("the swap file");
}

pub(super) fn sed_in_place(at: &Path, text: &str, _: &Path) {
    put(at, text.replace("priority: P2", "priority: TODO"));
    run("sed", &["-i", "s/TODO/P2/", &at.to_string_lossy()]);
}

pub(super) fn in_two_goes(at: &Path, text: &str, _: &Path) {
    let (head, rest) = text.split_at(text.find("subject").expect("it has a subject") + 3);
    put(at, head);
    wait::a_moment(4 * PAUSE);
    let mut file = File::options()
        .append(true)
        .open(at)
        .expect("it is still there");
    file.write_all(rest.as_bytes()).expect("room");
}

pub(super) fn touched_first(at: &Path, text: &str, _: &Path) {
    put(at, "");
    wait::a_moment(4 * PAUSE);
    put(at, text);
}

pub(super) fn renamed_in(at: &Path, text: &str, _: &Path) {
    put(&at.with_extension("part"), text);
    std::fs::rename(at.with_extension("part"), at).expect("a rename");
}

pub(super) fn linked_in(at: &Path, text: &str, _: &Path) {
    put(&at.with_extension("part"), text);
    std::fs::hard_link(at.with_extension("part"), at).expect("a link");
    wait::a_moment(PAUSE);
    std::fs::remove_file(at.with_extension("part")).expect("the first name");
}

pub(super) fn moved_in(at: &Path, text: &str, elsewhere: &Path) {
    let from = elsewhere.join("moved.yaml");
    put(&from, text);
    run("mv", &[&from, at]);
}

pub(super) fn copied_with_its_time(at: &Path, text: &str, elsewhere: &Path) {
    let from = elsewhere.join("copied.yaml");
    put(&from, text);
    run(
        "touch",
        &["-d".as_ref(), "last year".as_ref(), from.as_os_str()],
    );
    run("cp", &["-p".as_ref(), from.as_os_str(), at.as_os_str()]);
}

pub(super) fn socket(at: &Path) {
    // The address of a socket must be short, and the directory's name is not.
    let near = tempfile::tempdir_in("/tmp").expect("a directory");
    let bound = near.path().join("s");
    drop(std::os::unix::net::UnixListener::bind(&bound).expect("a socket"));
    run("mv", &[&bound, &at.to_path_buf()]);
}

pub(super) fn device(at: &Path, kind: &str, major: &str, minor: &str) {
    run(
        "mknod",
        &[
            at.as_os_str(),
            kind.as_ref(),
            major.as_ref(),
            minor.as_ref(),
        ],
    );
}

pub(super) fn directory(at: &Path) {
    std::fs::create_dir(at).expect("a directory");
    put(&at.join("inside.yaml"), "id: x\n");
}

pub(super) fn link(to: &str, at: &Path) {
    std::os::unix::fs::symlink(to, at).expect("a link");
}

/// A link to a correct message.
pub(super) fn link_to_message(at: &Path, text: &str, elsewhere: &Path) {
    put(&elsewhere.join("target.yaml"), text);
    link(&elsewhere.join("target.yaml").to_string_lossy(), at);
}

/// A second name of a correct message elsewhere on the same file system.
pub(super) fn hard_linked(at: &Path, text: &str, _: &Path) {
    let root = at.ancestors().nth(4).expect("an outbox is below a root");
    let target = root.with_file_name("hard-target");
    put(&target, text);
    std::fs::hard_link(target, at).expect("a link");
}

pub(super) fn sparse(at: &Path) {
    let file = File::create(at).expect("a file");
    file.set_len(5_000_000_000)
        .expect("a file system with sparse files");
}

pub(super) fn utf16(text: &str) -> Vec<u8> {
    format!("\u{feff}{text}")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect()
}

pub(super) fn run<S: AsRef<std::ffi::OsStr>>(program: &str, args: &[S]) {
    let output = Command::new(program).args(args).output();
    let output = output.unwrap_or_else(|error| panic!("`{program}` cannot be run: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program}: {said} (devices need root)"
    );
}
