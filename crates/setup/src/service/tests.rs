//! Tests the text of a service's file for paths and configs that a test cannot have on the disk; `tests/it/service.rs`
//! checks the files themselves.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Needs, Scope, Service, ServiceManager, SharedPlace, Work};

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
