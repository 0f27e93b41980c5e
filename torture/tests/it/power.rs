//! A short form of `cargo xtask powerloss`: the power is cut, and nothing that was promised is lost.

use settled_torture::power::{Ground, Options, Report};

fn run(ground: &str, states: usize, rounds: usize) -> Report {
    let ground: Ground = ground.parse().expect("a ground");
    let settled = settled_tests::binaries::settled();
    let told = |what: &str| eprintln!("{what}");
    let options = Options { settled: &settled, states, rounds, seed: 1, told: &told };
    let report = ground.run(&options).expect("the run itself works");
    assert!(report.wrong.is_empty(), "{:#?}", report.wrong);
    report
}

#[test]
fn nothing_promised_is_lost_on_ext4() {
    let report = run("ext4", 100, 3);
    eprintln!("{report:#?}");
}

#[test]
fn nothing_promised_is_lost_on_a_disk_that_forgets() {
    let report = run("simulated", 600, 3);
    eprintln!("{report:#?}");
}
