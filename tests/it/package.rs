//! The Debian package, installed by the real `dpkg` into a tree of its own, reinstalled, removed and purged: the files
//! after each step. Mail and other people's files survive all of it.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use settled_tests::debian::{package, step};
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{installed, list, read, write};
use tempfile::TempDir;

/// The remains that a purge leaves on purpose: the user `settled`, whose uid files may have.
const USER: [&str; 9] = [
    "etc",
    "etc/.pwd.lock",
    "etc/group",
    "etc/group-",
    "etc/gshadow",
    "etc/passwd",
    "etc/passwd-",
    "etc/shadow",
    "etc/gshadow-",
];

/// A tree into which `dpkg` installs as if it were a machine.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let is_root = rustix::process::geteuid().is_root();
        assert!(
            is_root,
            "packages are installed by root: run this test as root, or in a container"
        );
        let machine = Self(tempfile::tempdir().expect("a temporary directory"));
        for directory in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "etc"] {
            std::fs::create_dir_all(machine.at(directory)).expect("a temporary directory");
        }
        write(machine.at("var/lib/dpkg/status"), "");
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Runs `dpkg` on the tree; the machine of the test provides the dependencies.
    fn dpkg(&self, args: &[&str]) -> String {
        let mut dpkg = Command::new("dpkg");
        let root = format!("--root={}", self.0.path().display());
        dpkg.args([&root, "--force-script-chrootless", "--force-depends"])
            .args(args);
        let output = dpkg
            .output()
            .expect("dpkg can be run: this test needs a Debian, or its package dpkg");
        assert!(output.status.success(), "dpkg {args:?}: {}", said(&output));
        said(&output)
    }

    fn install(&self) {
        self.dpkg(&[
            "--install",
            package()
                .to_str()
                .expect("the build folder is named in UTF-8"),
        ]);
    }

    fn systemctl(&self, args: &[&str]) {
        let mut systemctl = Command::new("systemctl");
        systemctl
            .arg(format!("--root={}", self.0.path().display()))
            .args(args);
        step(
            &mut systemctl,
            "systemctl fails; this test needs the package systemd",
        );
    }

    /// Every path in the tree except the package manager's own.
    fn paths(&self) -> BTreeSet<String> {
        let mut paths = BTreeSet::new();
        collect(self.0.path(), self.0.path(), &mut paths);
        paths
            .retain(|path| path != "var" && path != "var/lib" && !path.starts_with("var/lib/dpkg"));
        paths
    }

    /// A workspace as a first user would make it, with a message on its way.
    fn mail(&self) -> Mailroom {
        let root = self.at("var/lib/settled/mailroom");
        let mut init = Command::new(self.at("usr/bin/settled"));
        step(
            init.args(["init", "--agents", "claude,codex"]).arg(&root),
            "no workspace",
        );
        write(
            root.join("agents/claude/outbox/message.yaml"),
            "not judged yet\n",
        );
        Mailroom::at(
            tempfile::tempdir().expect("a temporary directory"),
            root.to_str().expect("UTF-8"),
        )
    }
}

fn collect(root: &Path, directory: &Path, paths: &mut BTreeSet<String>) {
    for path in list(directory) {
        let below = path
            .strip_prefix(root)
            .expect("it is below")
            .to_string_lossy()
            .into_owned();
        paths.insert(below);
        if path.symlink_metadata().expect("it is there").is_dir() {
            collect(root, &path, paths);
        }
    }
}

#[test]
fn the_package_holds_what_a_machine_needs_and_nobody_else_can_change_it() {
    let info = step(
        Command::new("dpkg-deb").arg("--info").arg(package()),
        "dpkg-deb reads no package",
    );
    for said in [
        "Package: settled",
        "Version: 0.1.0-1",
        "libc6",
        "postinst",
        "prerm",
        "postrm",
    ] {
        assert!(info.contains(said), "{said} is missing in\n{info}");
    }
    let listed = step(
        Command::new("dpkg-deb").arg("--contents").arg(package()),
        "dpkg-deb reads no package",
    );
    for line in listed.lines() {
        let mode = line
            .split_whitespace()
            .next()
            .expect("a line begins with the mode");
        assert!(
            line.contains(" 0/0 ") || line.contains(" root/root "),
            "not root's: {line}"
        );
        let writers = [mode.get(5..6), mode.get(8..9)];
        assert!(
            mode.starts_with('l') || writers == [Some("-"); 2],
            "others may write: {line}"
        );
    }
    for path in [
        "usr/bin/settled",
        "usr/bin/settled-host",
        "usr/bin/settled-mcp",
        "usr/bin/settled-page",
        "usr/bin/settled-watch",
        "usr/bin/validate-message",
        "usr/lib/systemd/system/settled-notify.service",
        "usr/lib/systemd/system/settled.service",
        "usr/lib/sysusers.d/settled.conf",
        "usr/lib/tmpfiles.d/settled.conf",
        "usr/share/bash-completion/completions/settled",
        "usr/share/doc/settled/README.md",
        "usr/share/doc/settled/copyright",
        "usr/share/doc/settled/docs/operations.md",
        "usr/share/fish/vendor_completions.d/settled.fish",
        "usr/share/man/man1/settled.1.gz",
        "usr/share/man/man1/settled-service-install.1.gz",
        "usr/share/zsh/vendor-completions/_settled",
    ] {
        assert!(
            listed
                .lines()
                .any(|line| line.ends_with(&format!(" ./{path}"))),
            "{path} is missing"
        );
    }
    assert!(
        !listed.contains(" ./etc/"),
        "nothing lies where a person's files lie:\n{listed}"
    );
}

#[test]
fn an_installed_package_has_its_user_its_directory_and_a_unit_that_nobody_started() {
    let machine = Machine::new();
    machine.install();
    let passwd = read(machine.at("etc/passwd"));
    let line = passwd
        .lines()
        .find(|line| line.starts_with("settled:"))
        .expect("the user is there");
    let uid: u32 = line
        .split(':')
        .nth(2)
        .and_then(|uid| uid.parse().ok())
        .expect("a user has a number");
    assert!(
        (1..1000).contains(&uid) && line.ends_with("nologin"),
        "a user of the system: {line}"
    );
    let home = machine
        .at("var/lib/settled")
        .metadata()
        .expect("the directory is there");
    assert_eq!(
        (home.uid(), home.permissions().mode() & 0o7777),
        (uid, 0o755)
    );
    let is_wish = |path: &String| path.contains(".wants/");
    assert_eq!(
        machine.paths().into_iter().find(is_wish),
        None,
        "it is not enabled"
    );

    let version = step(
        Command::new(machine.at("usr/bin/settled")).arg("--version"),
        "it does not run",
    );
    let begins = format!("settled {} (", env!("CARGO_PKG_VERSION"));
    assert!(version.starts_with(&begins), "{version}");
    let place = tempfile::tempdir().expect("a temporary directory");
    let program = |name: &str| Command::new(machine.at("usr/bin").join(name));
    installed::works(program, place.path());
    let unit = machine.at("usr/lib/systemd/system/settled.service");
    // The program exists only in this tree; the rest of the unit is checked unchanged.
    let program = machine
        .at("usr/bin/settled")
        .to_str()
        .expect("UTF-8")
        .to_owned();
    let here = machine.0.path().join("settled.service");
    write(&here, &read(&unit).replace("/usr/bin/settled", &program));
    let mut verify = Command::new("systemd-analyze");
    let judged = verify
        .arg("verify")
        .arg(&here)
        .output()
        .expect("systemd-analyze can be run");
    assert!(
        judged.status.success() && judged.stderr.is_empty(),
        "{}",
        said(&judged)
    );
    let mut judge = Command::new("systemd-analyze");
    judge
        .args([
            "security",
            "--offline=true",
            "--no-pager",
            "--threshold",
            "10",
        ])
        .arg(&unit);
    step(&mut judge, "the packaged unit is more open than was asked");
}

#[test]
fn an_upgrade_keeps_what_was_set_and_a_removal_what_was_written() {
    let machine = Machine::new();
    machine.install();
    machine.systemctl(&["enable", "settled.service"]);
    let wish = machine.at("etc/systemd/system/multi-user.target.wants/settled.service");
    let mailroom = machine.mail();
    let message = mailroom.agent("claude", "outbox").join("message.yaml");
    let passwd = read(machine.at("etc/passwd"));
    machine.install();
    assert!(wish.is_symlink(), "an upgrade keeps it enabled");
    assert_eq!(read(machine.at("etc/passwd")), passwd);
    assert_eq!(read(&message), "not judged yet\n");

    machine.dpkg(&["--remove", "settled"]);
    assert!(!machine.at("usr").exists(), "{:?}", machine.paths());
    assert!(message.exists());
    machine.install();
    assert!(
        wish.is_symlink(),
        "a removed package that comes back is as it was"
    );
    let told = machine.dpkg(&["--purge", "settled"]);
    assert!(
        told.contains("the mail in") && told.contains("was left"),
        "{told}"
    );
    assert!(message.exists(), "mail is left by a purge too");
    assert!(!wish.is_symlink());
    assert!(!machine.at("usr").exists());
}

#[test]
fn a_purge_leaves_the_user_and_nothing_else() {
    let machine = Machine::new();
    machine.install();
    machine.systemctl(&["enable", "settled.service"]);
    machine.dpkg(&["--purge", "settled"]);
    let mut left = machine.paths();
    left.retain(|path| !USER.contains(&path.as_str()));
    // A real machine has these directories; here `systemctl enable` made them.
    for directory in [
        "etc/systemd",
        "etc/systemd/system",
        "etc/systemd/system/multi-user.target.wants",
    ] {
        left.remove(directory);
    }
    assert_eq!(left, BTreeSet::new());
}

/// A unit written by `settled service install` overrides the packaged one, and the package never touches it.
#[test]
fn the_package_leaves_a_service_alone_that_somebody_set_up() {
    let machine = Machine::new();
    let units = machine.at("etc/systemd/system");
    machine.install();
    let mailroom = Mailroom::new(&["claude"]);
    let mut install = Command::new(machine.at("usr/bin/settled"));
    install
        .args(["service", "install", "--system", "--into"])
        .arg(&units)
        .arg(mailroom.root());
    step(&mut install, "no unit");
    machine.systemctl(&["enable", "settled.service"]);
    let unit = units.join("settled.service");
    let wish = units.join("multi-user.target.wants/settled.service");
    let ours = read(&unit);
    let points_there = || {
        wish.read_link()
            .is_ok_and(|to| to == Path::new("/etc/systemd/system/settled.service"))
    };
    assert!(points_there(), "{:?}", wish.read_link());
    machine.install();
    machine.dpkg(&["--purge", "settled"]);
    assert_eq!(read(&unit), ours);
    assert!(points_there());
}
