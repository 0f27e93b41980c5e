//! Failures around the daemon: one test for each row of "When something fails" in `docs/spool.md`.

mod disk;
mod events;
mod ledger;
mod mailboxes;
mod process;
mod time;

use std::path::Path;
use std::process::Command;

use settled_tests::mailroom::Mailroom;
use settled_tests::{names, wait};
use settled_torture::checker::{Case, check};
use settled_torture::messages::{self, AGENTS, Message, Mix};

/// Writes `count` messages.
fn post(root: &Path, mix: Mix, count: usize, lot: u64) -> Vec<Message> {
    let messages = mix.messages(count, lot);
    messages
        .iter()
        .for_each(|message| messages::post(root, message));
    messages
}

/// Waits until every outbox is empty, so that everything is judged and put away.
fn cleared(root: &Path) {
    for agent in AGENTS {
        let outbox = root.join("agents").join(agent).join("outbox");
        wait::until(&format!("the outbox of {agent} to be empty"), || {
            names(&outbox).is_empty()
        });
    }
}

/// The errors among the arrivals: everything should arrive once and complete, and nothing should be refused that is
/// correct.
fn wrong(root: &Path, messages: &[Message]) -> Vec<String> {
    check(&Case {
        root,
        messages,
        takes: &[],
        may_repeat: false,
    })
}

fn adds_up(root: &Path, messages: &[Message]) {
    let wrong = wrong(root, messages);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Waits until everything arrived.
fn arrived(root: &Path, messages: &[Message]) {
    wait::until("every message to arrive", || {
        wrong(root, messages).is_empty()
    });
}

/// A workspace with its agents.
fn mailroom() -> Mailroom {
    Mailroom::new(&AGENTS)
}

/// Runs a system program that a test requires.
fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output();
    let output = output.unwrap_or_else(|error| panic!("this test needs `{program}`: {error}"));
    let said = settled_tests::mailroom::said(&output);
    assert!(
        output.status.success(),
        "this test needs `{program} {}` to work (root?): {said}",
        args.join(" ")
    );
}

/// A file system in memory, mounted on a temporary directory; dropping the value unmounts it.
struct Mount(tempfile::TempDir);

impl Mount {
    /// A place to mount at.
    fn place() -> Mount {
        let mount = Mount(tempfile::tempdir().expect("a temporary directory"));
        std::fs::create_dir(mount.path()).expect("a place to mount at");
        mount
    }

    fn of_kib(kib: u32) -> Mount {
        let mount = Mount::place();
        let path = mount.path().display().to_string();
        run(
            "mount",
            &[
                "-t",
                "tmpfs",
                "-o",
                &format!("size={kib}k,mode=755"),
                "tmpfs",
                &path,
            ],
        );
        mount
    }

    /// An ext4 file system with a journal, whose image is beside the place where it is mounted.
    fn of_ext4() -> Mount {
        let mount = Mount::place();
        let image = std::fs::File::create(mount.image());
        let sized = image.and_then(|image| image.set_len(64 << 20));
        sized.expect("a file for the image");
        run("mkfs.ext4", &["-q", &mount.image().display().to_string()]);
        mount.attach();
        mount
    }

    fn image(&self) -> std::path::PathBuf {
        self.0.path().join("image")
    }

    /// Mounts the image.
    fn attach(&self) {
        let [image, path] = [self.image(), self.path()].map(|path| path.display().to_string());
        run("mount", &["-o", "loop", &image, &path]);
    }

    /// Unmounts the image and repairs it, as after a crash of the machine.
    fn detach_and_repair(&self) {
        run("umount", &[&self.path().display().to_string()]);
        let fsck = Command::new("fsck.ext4")
            .args(["-f", "-y"])
            .arg(self.image())
            .output();
        let code = fsck.expect("this test needs `fsck.ext4`").status.code();
        assert!(
            matches!(code, Some(0 | 1)),
            "nothing wrong, or repaired: {code:?}"
        );
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("disk")
    }

    /// A workspace on it.
    fn mailroom(&self) -> std::path::PathBuf {
        let root = self.path().join("mailroom");
        let mut init = settled_tests::mailroom::settled();
        let output = init
            .arg("init")
            .arg(&root)
            .args(["--agents", &AGENTS.join(",")])
            .output();
        let output = output.expect("settled can be run");
        assert!(
            output.status.success(),
            "{}",
            settled_tests::mailroom::said(&output)
        );
        root
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Unmounted for everybody else at once, and completely when its last file is closed.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// Runs `settled serve --once` to its end; returns the exit code and its output.
fn once(root: &Path) -> (Option<i32>, String) {
    let mut settled = settled_tests::mailroom::settled();
    let output = settled
        .args(["serve", "--once"])
        .arg(root)
        .output()
        .expect("settled can be run");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}
