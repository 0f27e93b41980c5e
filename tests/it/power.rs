//! A short form of `cargo xtask powerloss`: the power is cut, and nothing that was promised is lost.

use std::io::Write;
use std::path::PathBuf;

use settled_torture::power::{Ground, Options, Report};

fn run(ground: Ground, states: usize, seed: u64) -> Report {
    // The simulated disk runs the daemon's mailroom in this very process.
    let settled = if ground == Ground::Simulated {
        PathBuf::new()
    } else {
        settled_tests::binaries::settled()
    };
    let options = Options {
        settled: &settled,
        states,
        rounds: 4,
        seed,
        told: &|_| {},
    };
    let report = ground.run(&options).expect("the run itself works");
    let shown = &report.wrong[..report.wrong.len().min(20)];
    assert!(
        shown.is_empty(),
        "broken on {}, {} times: {shown:#?}",
        report.ground,
        report.wrong.len()
    );
    // A run that put nothing at risk would prove nothing.
    assert!(
        report.states >= states / 2 && report.again > 0 && report.mended > 0,
        "{report:#?}"
    );
    say(&format!(
        "power loss: {} states on {}",
        report.states, report.ground
    ));
    report
}

/// Prints the ground past the test harness, which hides the output of passing tests.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

#[test]
fn nothing_promised_is_lost_on_a_real_file_system() {
    let ext4: Ground = "ext4".parse().unwrap_or(Ground::Simulated);
    if let Some(missing) = ext4.lacks() {
        say(&format!(
            "power loss: no real file system here: {missing}; the simulated disk runs instead"
        ));
        run(Ground::Simulated, 400, 2);
        return;
    }
    let report = run(ext4, 70, 1);
    assert!(report.unmountable.is_empty(), "{report:#?}");
}

#[test]
fn nothing_promised_is_lost_on_a_disk_that_forgets() {
    let report = run(Ground::Simulated, 400, 1);
    assert!(report.torn > 0, "{report:#?}");
}
