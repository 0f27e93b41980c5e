//! A remote that takes a second to answer, as forges behind ssh do, is as good as a fast one.
//!
//! No call waits that long for the thread that talks to the remote.

use std::fs;
use std::path::PathBuf;

use super::hosts::Hosts;
use crate::executable::executable;

const TOWER_JOINS: [&str; 5] = [
    "join",
    "forge:ledger.git",
    "--as",
    "tower",
    "--agents=claude",
];
const LAPTOP_JOINS: [&str; 5] = [
    "join",
    "forge:ledger.git",
    "--as",
    "laptop",
    "--agents=codex,pi",
];

/// Two hosts, and the ssh that takes them to their log.
struct Forge {
    hosts: Hosts,
    ssh: PathBuf,
}

impl Forge {
    fn fast() -> Forge {
        let hosts = Hosts::apart();
        let ssh = hosts.path("ssh");
        let script = "#!/bin/sh\nfor last; do :; done\ntest ! -e \"$0.slow\" || sleep 1\n\
                      cd \"${0%/*}\" && exec sh -c \"$last\"\n";
        executable(&ssh, script.as_bytes());
        Forge { hosts, ssh }
    }

    fn slow() -> Forge {
        let forge = Forge::fast();
        forge.slow_down();
        forge
    }

    /// Both hosts have joined, and the remote is slow from now on.
    fn joined() -> Forge {
        let forge = Forge::fast();
        forge.tower(&TOWER_JOINS);
        forge.laptop(&LAPTOP_JOINS);
        forge.slow_down();
        forge
    }

    fn slow_down(&self) {
        fs::write(self.ssh.with_extension("slow"), "").expect("a mark");
    }

    fn tower(&self, args: &[&str]) -> String {
        self.hosts.tower.done_over(&self.ssh, args)
    }

    fn laptop(&self, args: &[&str]) -> String {
        self.hosts.laptop.done_over(&self.ssh, args)
    }
}

#[test]
fn hosts_join_over_it() {
    let forge = Forge::slow();
    forge.tower(&TOWER_JOINS);
    let told = forge.laptop(&LAPTOP_JOINS);
    assert!(told.contains("with 2 records\n"), "{told}");
    assert!(told.contains("\nother hosts: tower\n"), "{told}");
}

#[test]
fn it_passes_the_check_and_takes_a_change() {
    let forge = Forge::joined();
    let check = forge.tower(&["check"]);
    assert!(check.contains("answers, with records up to 2"), "{check}");
    let moved = forge.laptop(&["move-home", "pi", "--to", "tower", "--by", "ann"]);
    assert!(moved.starts_with("recorded: "), "{moved}");
}

#[test]
fn mail_passes_through_it() {
    let forge = Forge::joined();
    forge.hosts.tower.ask("claude", "codex", "q1");
    forge.tower(&["serve", "--once"]);
    forge.laptop(&["serve", "--once"]);
    assert_eq!(forge.hosts.laptop.inbox("codex"), ["q1.yaml"]);
}
