//! `settled service`: systemd's own tools and a reader of property lists judge what it writes, and it never touches
//! files that are not ours.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use settled_tests::mailroom::{Mailroom, said, settled};
use settled_tests::{names, read, write};

/// The most exposure of a daemon that starts no agents, in tenths of systemd's points.
const EXPOSURE_MAX: &str = "10";

/// Runs a tool of systemd, which this test requires.
fn systemd_analyze(args: &[&str], file: &Path) -> Output {
    Command::new("systemd-analyze")
        .args(args)
        .arg(file)
        .env("SYSTEMD_COLORS", "0")
        .output()
        .expect("systemd-analyze can be run: install the package systemd")
}

/// Runs `settled service` with an empty environment, and writes into a directory beside the workspace.
fn service(mailroom: &Mailroom, args: &[&str]) -> Output {
    let mut command = settled();
    command
        .env_clear()
        .arg("service")
        .args(args)
        .arg("--root")
        .arg(mailroom.root());
    command
        .arg("--into")
        .arg(units(mailroom))
        .output()
        .expect("settled can be run")
}

fn units(mailroom: &Mailroom) -> PathBuf {
    mailroom
        .root()
        .parent()
        .expect("it is in a temporary directory")
        .join("units")
}

fn install(mailroom: &Mailroom, args: &[&str]) -> PathBuf {
    let output = service(mailroom, &[&["install"], args].concat());
    assert!(output.status.success(), "{}", said(&output));
    units(mailroom).join("settled.service")
}

fn proves(tool: &[&str], file: &Path) {
    let output = systemd_analyze(tool, file);
    assert!(
        output.status.success(),
        "{tool:?}: {}\n{}",
        said(&output),
        read(file)
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "",
        "{tool:?} complains of\n{}",
        read(file)
    );
}

#[test]
fn systemd_finds_nothing_wrong_with_any_unit() {
    for args in [
        &["--system"][..],
        &["--user"],
        &["--system", "--starts-agents"],
        &["--user", "--starts-agents"],
        &["--system", "--notify", "--name", "settled"],
        &["--user", "--notify", "--name", "settled"],
    ] {
        let mailroom = Mailroom::new(&["claude", "codex"]);
        proves(&["verify"], &install(&mailroom, args));
    }
}

#[test]
fn a_daemon_that_starts_no_agents_is_confined() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let score = [
        "security",
        "--offline=true",
        "--no-pager",
        "--threshold",
        EXPOSURE_MAX,
    ];
    proves(&score, &install(&mailroom, &["--system"]));
    // The daemon can only see the owners of files with more privileges.
    mailroom.put("settled.toml", "[agents.claude]\nuid = 61001\n");
    let unit = install(&mailroom, &["--system"]);
    assert!(read(&unit).contains("PrivateUsers=no"), "{}", read(&unit));
    proves(&score, &unit);
    // The tool really applies the threshold.
    let open = install(&mailroom, &["--system", "--starts-agents"]);
    assert!(!systemd_analyze(&score, &open).status.success());
}

#[test]
fn a_unit_names_everything_by_its_whole_path_whatever_the_path_is() {
    for path in [
        "mail room",
        "100%n",
        "$HOME",
        "it's \"quoted\" \\ so",
        "@NAME@",
        "ümlaut",
    ] {
        let directory = settled_tests::scratch();
        let mailroom = Mailroom::at(directory, path);
        assert!(
            mailroom
                .run(&["init", "--agents", "claude"])
                .status
                .success()
        );
        let unit = install(&mailroom, &["--system"]);
        proves(&["verify"], &unit);
        let text = read(&unit);
        let start = text
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart="))
            .expect("it starts something");
        assert!(start.starts_with('/'), "{start}");
        assert!(
            service(&mailroom, &["status", "--system"]).status.code() == Some(0),
            "{path}"
        );
        let plist = service(&mailroom, &["install", "--system", "--launchd"]);
        assert!(plist.status.success(), "{}", said(&plist));
        let reader = "import plistlib,sys; print(plistlib.load(open(sys.argv[1],'rb'))['ProgramArguments'][2])";
        let mut python = Command::new("python3");
        python
            .args(["-c", reader])
            .arg(units(&mailroom).join("settled.plist"));
        let output = python
            .env("PYTHONIOENCODING", "utf-8")
            .output()
            .expect("python3 can be run");
        let root = mailroom.root().canonicalize().expect("it is there");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim_end(),
            root.to_string_lossy()
        );
    }
}

#[test]
fn a_path_that_breaks_lines_is_refused() {
    let directory = settled_tests::scratch();
    let mailroom = Mailroom::at(directory, "a\nUser=root");
    assert!(
        mailroom
            .run(&["init", "--agents", "claude"])
            .status
            .success()
    );
    let output = service(&mailroom, &["install", "--system"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert_eq!(names(units(&mailroom)), Vec::<String>::new());
}

#[test]
fn a_file_is_written_once_and_changed_only_if_it_is_ours() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let said_of = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let code = |args: &[&str]| service(&mailroom, args).status.code();
    assert_eq!(code(&["status"]), Some(3), "nothing is installed");
    assert!(said_of(&service(&mailroom, &["install"])).starts_with("made "));
    assert!(said_of(&service(&mailroom, &["install"])).starts_with("unchanged "));
    assert_eq!(code(&["status"]), Some(0));
    assert_eq!(
        code(&["status", "--starts-agents"]),
        Some(6),
        "another one would be written"
    );

    let unit = units(&mailroom).join("settled.service");
    let ours = read(&unit);
    write(&unit, &ours.replace("mailroom", "elsewhere"));
    assert_eq!(code(&["install"]), Some(6), "it is for another workspace");
    assert_eq!(code(&["uninstall"]), Some(6));
    write(&unit, "[Service]\nExecStart=/bin/true\n");
    assert_eq!(code(&["install"]), Some(6), "somebody else wrote it");
    assert_eq!(read(&unit), "[Service]\nExecStart=/bin/true\n");

    write(&unit, &ours);
    let wants = units(&mailroom).join("multi-user.target.wants");
    std::fs::create_dir(&wants).expect("a directory");
    std::os::unix::fs::symlink(&unit, wants.join("settled.service")).expect("a link");
    let enabled = service(&mailroom, &["uninstall", "--system"]);
    assert_eq!(enabled.status.code(), Some(6), "{}", said(&enabled));
    assert!(
        said(&enabled).contains("systemctl disable --now settled.service"),
        "{}",
        said(&enabled)
    );
    std::fs::remove_file(wants.join("settled.service")).expect("the link");
    assert_eq!(code(&["uninstall", "--system", "--dry-run"]), Some(0));
    assert!(unit.exists());
    assert_eq!(code(&["uninstall", "--system"]), Some(0));
    assert!(!unit.exists());
    assert_eq!(code(&["uninstall", "--system"]), Some(3), "it is gone");
}

#[test]
fn a_dry_run_prints_the_file_and_changes_nothing() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let output = service(&mailroom, &["install", "--user", "--dry-run"]);
    assert_eq!(names(units(&mailroom)), Vec::<String>::new());
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(printed, read(install(&mailroom, &["--user"])));
}
