//! The disk of the machine: a small Debian made once below the build folder, with the package and the checks added for
//! each run, and a file system made of it without mounting.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use settled_tests::binaries;

/// The Debian release whose systemd `docs/operations.md` measures.
const SUITE: &str = "bookworm";

/// The packages beyond the minimum.
const PACKAGES: &str =
    "systemd,systemd-sysv,dbus,libpam-systemd,udev,kmod,procps,linux-image-cloud-amd64";

/// The checking script, and the unit that starts it at each boot.
const CHECKS: [(&str, &str); 3] = [
    ("opt/checks/run", include_str!("checks.sh")),
    ("opt/checks/lib.sh", include_str!("lib.sh")),
    (
        "etc/systemd/system/checks.service",
        include_str!("checks.service"),
    ),
];

/// A Debian as a tree of files.
pub(super) struct Tree(PathBuf);

impl Tree {
    /// Returns the tree, made if missing.
    pub(super) fn cached() -> Result<Self, String> {
        let room = binaries::target().join("systemd");
        let tree = room.join(SUITE);
        let complete = room.join(format!("{SUITE}.complete"));
        if !complete.exists() {
            println!("making a Debian below {} …", room.display());
            std::fs::create_dir_all(&room)
                .map_err(|error| format!("{}: {error}", room.display()))?;
            // Its mounts are in its own namespace and disappear with it.
            let mut make = Command::new("unshare");
            make.args(["--mount", "debootstrap", "--variant=minbase"]);
            make.arg(format!("--include={PACKAGES}"))
                .arg(SUITE)
                .arg(&tree);
            done(&mut make)?;
            write(&complete, "")?;
        }
        Ok(Self(tree))
    }

    /// Adds the package and the checks.
    pub(super) fn furnish(&self, package: &Path) -> Result<(), String> {
        for (path, text) in CHECKS {
            write(&self.0.join(path), text)?;
        }
        let copied = std::fs::copy(package, self.0.join("opt/checks/settled.deb"));
        copied.map_err(|error| format!("{}: {error}", package.display()))?;
        let wants = self
            .0
            .join("etc/systemd/system/multi-user.target.wants/checks.service");
        if wants.symlink_metadata().is_err() {
            let linked = std::os::unix::fs::symlink("/etc/systemd/system/checks.service", &wants);
            linked.map_err(|error| format!("{}: {error}", wants.display()))?;
        }
        write(&self.0.join("etc/hostname"), "mailroom\n")?;
        // The journal has to survive the power cut.
        let journal = self.0.join("var/log/journal");
        std::fs::create_dir_all(&journal).map_err(|error| format!("{}: {error}", journal.display()))
    }

    /// Makes a file system from the tree.
    pub(super) fn image(&self) -> Result<PathBuf, String> {
        let image = self.0.with_extension("ext4");
        let _ = std::fs::remove_file(&image);
        let mut make = Command::new("mke2fs");
        make.args(["-q", "-t", "ext4", "-d"])
            .arg(&self.0)
            .arg(&image)
            .arg("2G");
        done(&mut make)?;
        Ok(image)
    }

    /// Returns a file of `/boot`: the kernel, or its initial file system.
    pub(super) fn boot(&self, begins: &str) -> Result<PathBuf, String> {
        let boot = self.0.join("boot");
        let is_it = |path: &PathBuf| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with(begins))
        };
        let found = settled_tests::list(&boot).into_iter().find(is_it);
        found.ok_or_else(|| format!("no {begins} in {}", boot.display()))
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let parent = path.parent().expect("a file is in a directory");
    let made = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(path, text));
    made.map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs a step to its end; its output matters only if it fails.
fn done(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let lines: Vec<&str> = said.iter().flat_map(|text| text.lines()).collect();
    let last = lines[lines.len().saturating_sub(5)..].join("\n");
    Err(format!("{program}: {}\n{last}", output.status))
}
