//! Tests the text of a service's file for paths and configs that a test cannot have on the disk, and what becomes of the
//! file; `tests/it/service.rs` has service managers judge it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{
    FileChange, InstalledFile, Needs, Scope, Service, ServiceManager, ServiceRequest, SharedPlace,
    Work,
};

/// The unit in the Debian package.
const PACKAGED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../packaging/debian/settled.service"
);

/// The most exposure that is accepted, in tenths of systemd's points.
const ASKED: u32 = 10;

/// The most with everything open that a mailroom may need.
const OPEN: u32 = 11;

/// The most with the network that a shared ledger needs.
const NETWORK: u32 = 14;

/// A service for the machine, with a workspace outside homes and the packaged program.
fn service(root: &str, needs: Needs) -> Service {
    Service {
        kind: ServiceManager::Systemd,
        scope: Scope::System,
        name: "settled".to_owned(),
        directory: PathBuf::from("/etc/systemd/system"),
        program: PathBuf::from("/usr/bin/settled"),
        root: PathBuf::from(root),
        owner: (61_000, 61_000),
        work: Work::MailOnly,
        needs,
    }
}

#[test]
fn the_packaged_unit_is_the_one_that_would_be_installed() {
    // The machine that unpacks it may or may not give agents users of their own, so it works for both.
    let needs = Needs {
        sees_users: true,
        ..Needs::default()
    };
    is_packaged(&service("/var/lib/settled/mailroom", needs), PACKAGED);
}

fn is_packaged(service: &Service, packaged: &str) {
    let text = service.text().expect("a plain path");
    let (_, body) = text.split_once("[Unit]").expect("a unit has that section");
    let name = &service.name;
    let head = format!(
        "# Part of the package settled, which neither enables nor starts it: the workspace it serves is made by a person\n\
         # (settled init). A unit that `settled service install` writes into /etc takes its place.\n\
         # Changes belong into a drop-in (systemctl edit {name}.service).\n[Unit]"
    );
    let wanted = format!("{head}{}", body.replace("=61000\n", "=settled\n"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(packaged, &wanted).expect("the repository can be written");
    }
    let kept = std::fs::read_to_string(packaged).unwrap_or_default();
    assert!(
        kept == wanted,
        "{packaged} differs; UPDATE=1 rewrites it\n--- now\n{wanted}"
    );
}

/// The notifier's unit in the Debian package.
const PACKAGED_NOTIFY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../packaging/debian/settled-notify.service"
);

#[test]
fn the_packaged_unit_of_the_notifier_is_the_one_that_would_be_installed() {
    let service = Service {
        work: Work::Notifies,
        name: "settled-notify".to_owned(),
        ..service("/var/lib/settled/mailroom", Needs::default())
    };
    is_packaged(&service, PACKAGED_NOTIFY);
}

/// A daemon that cannot read the boot id does not start; `cargo xtask systemd` found this.
#[test]
fn no_unit_hides_what_the_daemon_reads_from_proc() {
    for (work, scope) in [Work::MailOnly, Work::StartsAgents]
        .map(|work| [(work, Scope::System), (work, Scope::User)])
        .concat()
    {
        let service = Service {
            work,
            scope,
            ..service("/srv/mailroom", Needs::default())
        };
        assert!(
            !service
                .text()
                .expect("a plain path")
                .contains("ProcSubset=pid"),
            "{work:?}, {scope:?}"
        );
    }
}

/// Systemd's rating of a unit, in tenths of its points.
fn exposure(text: &str, directory: &Path) -> u32 {
    let file = directory.join("settled.service");
    std::fs::write(&file, text).expect("a temporary directory");
    let within = |tenths: &u32| {
        let mut judge = Command::new("systemd-analyze");
        judge.args([
            "security",
            "--offline=true",
            "--no-pager",
            "--threshold",
            &tenths.to_string(),
        ]);
        let output = judge
            .arg(&file)
            .output()
            .expect("systemd-analyze can be run: install the package systemd");
        output.status.success()
    };
    (0..100)
        .find(within)
        .expect("no unit has more than 10 points")
}

#[test]
fn only_a_loopback_port_together_with_users_of_their_own_costs_more_than_is_asked() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let score = |sees_users, loopback| {
        let text = service(
            "/srv/mailroom",
            Needs {
                sees_users,
                loopback,
                ..Needs::default()
            },
        )
        .text()
        .expect("a plain path");
        exposure(&text, directory.path())
    };
    let found = [
        score(false, false),
        score(true, false),
        score(false, true),
        score(true, true),
    ];
    assert!(found[..3].iter().all(|score| *score <= ASKED), "{found:?}");
    assert!(found[3] <= OPEN, "{found:?}");
}

#[test]
fn a_host_that_shares_its_ledger_reaches_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text = |root: &str, ledger: SharedPlace| {
        let needs = Needs {
            ledger,
            ..Needs::default()
        };
        service(root, needs).text().expect("a plain path")
    };
    for (ledger, homes) in [
        (SharedPlace::Brokers, "yes"),
        (SharedPlace::Remote, "read-only"),
    ] {
        let text = text("/srv/mailroom", ledger);
        for line in [
            "PrivateNetwork=no",
            "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
            &format!("ProtectHome={homes}"),
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(!text.contains("IPAddressDeny"), "{text}");
        let score = exposure(&text, directory.path());
        assert!(score <= NETWORK, "{score}\n{text}");
    }
    // A repository on this machine needs no network, only its directory.
    for (path, lines) in [
        ("/srv/ledger.git", &["ReadWritePaths=/srv/ledger.git"][..]),
        (
            "/home/ann/ledger.git",
            &["BindPaths=/home/ann/ledger.git", "ProtectHome=tmpfs"],
        ),
        ("/tmp/ledger.git", &["PrivateTmp=no"]),
    ] {
        let text = text("/srv/mailroom", SharedPlace::Directory(PathBuf::from(path)));
        for line in [&["PrivateNetwork=yes"], lines].concat() {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
    }
}

#[test]
fn each_service_manager_has_its_own_file_and_its_own_commands() {
    let told = |kind, scope| {
        let service = Service {
            kind,
            scope,
            directory: PathBuf::from("/my units"),
            ..service("/srv/mailroom", Needs::default())
        };
        let path = service.path().display().to_string();
        [vec![path], service.start(), vec![service.stop()]].concat()
    };
    assert_eq!(
        told(ServiceManager::Systemd, Scope::System),
        [
            "/my units/settled.service",
            "systemctl daemon-reload",
            "systemctl enable --now settled.service",
            "systemctl disable --now settled.service",
        ]
    );
    assert_eq!(
        told(ServiceManager::Systemd, Scope::User),
        [
            "/my units/settled.service",
            "systemctl --user daemon-reload",
            "systemctl --user enable --now settled.service",
            "systemctl --user disable --now settled.service",
        ]
    );
    assert_eq!(
        told(ServiceManager::Launchd, Scope::System),
        [
            "/my units/settled.plist",
            "launchctl bootstrap system '/my units/settled.plist'",
            "launchctl bootout system/settled",
        ]
    );
    assert_eq!(
        told(ServiceManager::Launchd, Scope::User),
        [
            "/my units/settled.plist",
            "launchctl bootstrap gui/$(id -u) '/my units/settled.plist'",
            "launchctl bootout gui/$(id -u)/settled",
        ]
    );
}

#[test]
fn our_file_is_made_changed_and_removed_and_no_other_is_touched() {
    let home = tempfile::tempdir().expect("a directory");
    let units = home.path().join("units");
    let old = Service {
        directory: units.clone(),
        ..service("/srv/mailroom", Needs::default())
    };
    let file = old.path();
    let is_there = |text: &str| fs::read_to_string(&file).expect("a file") == text;
    let absent = format!("{} does not exist", file.display());
    assert_eq!(old.find().expect("no file"), InstalledFile::Nothing);
    assert_eq!(old.remove().expect_err("no file").to_string(), absent);
    assert_eq!(old.write().expect("written"), FileChange::Made);
    assert_eq!(old.find().expect("our file"), InstalledFile::Same);
    assert_eq!(old.write().expect("as it is"), FileChange::Unchanged);

    let new = Service {
        work: Work::StartsAgents,
        ..old.clone()
    };
    assert_eq!(new.find().expect("our file"), InstalledFile::Other);
    assert_eq!(new.write().expect("written"), FileChange::Changed);
    let text = new.text().expect("a plain path");
    assert!(is_there(&text));
    let elsewhere = Service {
        root: PathBuf::from("/srv/other"),
        ..old
    };
    let refused = elsewhere.write().expect_err("it serves another workspace");
    let of_another = "is for another workspace, /srv/mailroom; nothing was changed";
    assert_eq!(
        refused.to_string(),
        format!("{} {of_another}", file.display())
    );
    assert!(is_there(&text));

    let wants = units.join("multi-user.target.wants");
    fs::create_dir(&wants).expect("a directory");
    std::os::unix::fs::symlink(&file, wants.join("settled.service")).expect("a link");
    let enabled = format!("{} is still enabled; nothing was changed", file.display());
    assert_eq!(new.remove().expect_err("enabled").to_string(), enabled);
    assert!(is_there(&text));
    fs::remove_dir_all(&wants).expect("a directory");
    new.remove().expect("removed");
    assert!(!file.exists());

    let theirs = "[Service]\nExecStart=/usr/bin/other\n";
    fs::write(&file, theirs).expect("a file");
    let not_ours = format!(
        "{} was not written by settled; nothing was changed",
        file.display()
    );
    let errors = [new.find().err(), new.write().err(), new.remove().err()];
    for error in errors {
        assert_eq!(error.expect("not ours").to_string(), not_ours);
    }
    assert!(is_there(theirs));
}

/// The lines of a unit on what it sees of the disk, of users and of the network.
fn sights(service: &Service) -> Vec<String> {
    let sights = [
        "ProtectHome=",
        "Bind",
        "ReadWritePaths=",
        "Private",
        "IPAddress",
        "RestrictAddressFamilies=",
    ];
    let same = ["PrivateMounts=yes", "PrivateDevices=yes", "PrivateIPC=yes"];
    let text = service.text().expect("a plain path");
    text.lines()
        .filter(|line| sights.iter().any(|sight| line.starts_with(sight)) && !same.contains(line))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_confined_daemon_sees_its_places_and_no_other() {
    let no_network = [
        "IPAddressDeny=any",
        "PrivateNetwork=yes",
        "RestrictAddressFamilies=AF_UNIX",
    ];
    assert_eq!(
        sights(&service("/srv/mailroom", Needs::default())),
        [
            &[
                "ReadWritePaths=/srv/mailroom",
                "ProtectHome=yes",
                "PrivateTmp=yes",
                "PrivateUsers=yes",
            ][..],
            &no_network,
        ]
        .concat()
    );
    // Homes and temporary directories are replaced by empty ones, in which only what it needs is.
    let at_home = Service {
        program: PathBuf::from("/root/bin/settled"),
        ..service(
            "/home/ann/mail room",
            Needs {
                ledger: SharedPlace::Directory(PathBuf::from("/home/ann/ledger.git")),
                ..Needs::default()
            },
        )
    };
    assert_eq!(
        sights(&at_home),
        [
            &[
                "ReadWritePaths=\"/home/ann/mail room\"",
                "ProtectHome=tmpfs",
                "BindPaths=\"/home/ann/mail room\"",
                "BindReadOnlyPaths=/root/bin/settled",
                "BindReadOnlyPaths=/root/bin/settled-host",
                "ReadWritePaths=/home/ann/ledger.git",
                "BindPaths=/home/ann/ledger.git",
                "PrivateTmp=yes",
                "PrivateUsers=yes",
            ][..],
            &no_network,
        ]
        .concat()
    );
    let built = Service {
        program: PathBuf::from("/home/ann/settled"),
        ..service("/var/tmp/mailroom", Needs::default())
    };
    assert_eq!(
        sights(&built),
        [
            &[
                "ReadWritePaths=/var/tmp/mailroom",
                "ProtectHome=tmpfs",
                "BindReadOnlyPaths=/home/ann/settled",
                "PrivateTmp=no",
                "PrivateUsers=yes",
            ][..],
            &no_network,
        ]
        .concat()
    );
    let needs = Needs {
        sees_users: true,
        loopback: true,
        ledger: SharedPlace::Unshared,
    };
    assert_eq!(
        sights(&service("/srv/mailroom", needs)),
        [
            "ReadWritePaths=/srv/mailroom",
            "ProtectHome=yes",
            "PrivateTmp=yes",
            "PrivateUsers=no",
            "IPAddressDeny=any",
            "PrivateNetwork=no",
            "IPAddressAllow=localhost",
            "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
        ]
    );
    let needs = Needs {
        ledger: SharedPlace::Remote,
        ..Needs::default()
    };
    assert_eq!(
        sights(&service("/srv/mailroom", needs)),
        [
            "ReadWritePaths=/srv/mailroom",
            "ProtectHome=read-only",
            "PrivateTmp=yes",
            "PrivateUsers=yes",
            "PrivateNetwork=no",
            "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
        ]
    );
}

#[test]
fn every_path_is_written_as_its_place_in_the_file_reads_it() {
    let odd = service("/srv/a $b \"c\" 100%\\", Needs::default());
    let text = odd.text().expect("a path in one line");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("/srv/a"))
        .collect();
    assert_eq!(
        lines,
        [
            r#"# Written by `settled service install` for the workspace /srv/a $b "c" 100%\"#,
            r#"Description=Settled, the mailroom for AI code review: /srv/a $b "c" 100%%\"#,
            r#"RequiresMountsFor="/srv/a $b \"c\" 100%%\\""#,
            r#"AssertPathIsDirectory=/srv/a $b "c" 100%%\/.settled"#,
            r#"ExecStart=/usr/bin/settled serve "/srv/a $$b \"c\" 100%%\\""#,
            r#"WorkingDirectory=/srv/a $b "c" 100%%\"#,
            r#"ReadWritePaths="/srv/a $b \"c\" 100%%\\""#,
        ]
    );
    let plist = Service {
        kind: ServiceManager::Launchd,
        work: Work::Notifies,
        // The user of another machine, which has no name here.
        owner: (4_000_000_000, 0),
        ..service("/srv/a--<b>&c", Needs::default())
    };
    let strings = |service: &Service| {
        let text = service.text().expect("a path in one line");
        let lines = text.lines().map(str::trim);
        let strings = lines.filter_map(|line| {
            let string = line.strip_prefix("<string>")?;
            string.strip_suffix("</string>")
        });
        strings.map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(
        strings(&plist),
        [
            "settled",
            "/usr/bin/settled",
            "notify",
            "/srv/a-&#45;&lt;b&gt;&amp;c",
            "#4000000000",
            "/",
            "/usr/bin:/bin",
            "json",
            "/srv/a-&#45;&lt;b&gt;&amp;c/.settled/notify.log",
        ]
    );
    let of_a_user = Service {
        scope: Scope::User,
        work: Work::MailOnly,
        ..plist
    };
    assert_eq!(
        strings(&of_a_user),
        [
            "settled",
            "/usr/bin/settled",
            "serve",
            "/srv/a-&#45;&lt;b&gt;&amp;c",
            "/",
            "/usr/bin:/bin",
            "json",
            "/srv/a-&#45;&lt;b&gt;&amp;c/.settled/daemon.log",
        ]
    );
    for kind in [ServiceManager::Systemd, ServiceManager::Launchd] {
        let of_two_lines = Service {
            kind,
            ..service("/srv/two\nlines", Needs::default())
        };
        assert_eq!(
            of_two_lines.text(),
            Err("/srv/two\nlines is not a path that a service file can hold".to_owned())
        );
    }
}

#[test]
fn a_file_that_launchd_reads_is_found_by_its_workspace_too() {
    let home = tempfile::tempdir().expect("a directory");
    let service = Service {
        kind: ServiceManager::Launchd,
        directory: home.path().to_owned(),
        ..service("/srv/a--b", Needs::default())
    };
    assert_eq!(service.write().expect("written"), FileChange::Made);
    assert_eq!(service.find().expect("our file"), InstalledFile::Same);
    // launchd starts every file in its directory, and knows no other way to enable one.
    assert!(!service.is_enabled());
    service.remove().expect("removed");
    assert_eq!(service.find().expect("no file"), InstalledFile::Nothing);
}

#[test]
fn a_request_becomes_the_service_of_its_workspace_with_what_the_config_needs() {
    let home = tempfile::tempdir().expect("a directory");
    let root = home.path().canonicalize().expect("a path").join("room");
    fs::create_dir(&root).expect("a directory");
    let request = |scope, directory: Option<&Path>| ServiceRequest {
        scope,
        kind: ServiceManager::Systemd,
        name: "room".to_owned(),
        directory: directory.map(Path::to_owned),
        work: Work::MailOnly,
    };
    let asked = || request(None, Some(Path::new("units")));
    let needs = |config: &str| {
        fs::write(root.join("settled.toml"), config).expect("a file");
        Service::resolve(&root, asked()).expect("a service").needs
    };
    let made = fs::metadata(&root).expect("a directory");
    let owner = (made.uid(), made.gid());
    let service = Service::resolve(&home.path().join("room/."), asked()).expect("a service");
    let default = match rustix::process::geteuid().as_raw() {
        0 => Scope::System,
        _ => Scope::User,
    };
    assert_eq!((service.scope, service.owner), (default, owner));
    assert_eq!(service.root, root);
    assert_eq!(service.path(), Path::new("units/room.service"));
    assert_eq!(
        Some(service.program),
        std::env::current_exe().and_then(fs::canonicalize).ok()
    );
    assert_eq!(service.needs, Needs::default());
    let at_its_manager =
        Service::resolve(&root, request(Some(Scope::System), None)).expect("a service");
    assert_eq!(
        at_its_manager.path(),
        Path::new("/etc/systemd/system/room.service")
    );

    let all = "[agents.claude]\nuid = 61001\n[metrics]\nlisten = \"127.0.0.1:9100\"\n";
    let all = needs(all);
    assert!(all.sees_users && all.loopback, "{all:?}");
    let ledger = |log: &str| needs(&format!("[ledger]\nlog = \"{log}\"\n")).ledger;
    let directory = |path: &str| SharedPlace::Directory(PathBuf::from(path));
    assert_eq!(ledger("nats://one:4222"), SharedPlace::Brokers);
    assert_eq!(ledger("tls://one:4222"), SharedPlace::Brokers);
    assert_eq!(ledger("file:///srv/ledger"), directory("/srv/ledger"));
    assert_eq!(ledger("/srv/ledger"), directory("/srv/ledger"));
    assert_eq!(ledger("git@host:ledger.git"), SharedPlace::Remote);

    let none = Service::resolve(&home.path().join("none"), asked()).expect_err("no workspace");
    assert_eq!(
        none.to_string(),
        format!(
            "{}: No such file or directory (os error 2)",
            home.path().join("none").display()
        )
    );
}
