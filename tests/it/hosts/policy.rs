//! The one policy of all hosts: a host that has another one is stopped, gives its own, or takes theirs.

use settled_tests::mailroom::Mailroom;
use settled_tests::{read, wait};

use super::programs::{Hosts, done, ledger, refused, review};

#[test]
fn another_policy_stops_a_host_until_it_takes_it() {
    let hosts = Hosts::on_a_repository();
    hosts.tower.put(
        "settled.toml",
        &format!(
            "{}\n[rounds]\nmax = 3\n",
            read(hosts.tower.root().join("settled.toml"))
        ),
    );
    let told = refused(&hosts.tower, &["doctor"]);
    assert!(
        told.contains("the policy in settled.toml is not that of the other hosts"),
        "{told}"
    );
    done(&hosts.tower, &["host", "policy", "--give", "--by", "ann"]);
    let laptop = hosts.laptop.serve();
    wait::until("the laptop to stop following", || {
        done(&hosts.laptop, &["status"]).contains("settled host policy --take")
    });
    drop(laptop);
    done(&hosts.laptop, &["host", "policy", "--take"]);
    let _daemons = (hosts.tower.serve(), hosts.laptop.serve());
    review(&hosts, "86");
    hosts.have_the_same_ledger();
    // One that joins judges the records before the change by the policy of their time.
    let ci = Mailroom::absent();
    let join = ["host", "join", &hosts.log(), "--as", "ci", "--agents", "pi"];
    done(&ci, &join);
    let config = read(ci.root().join("settled.toml"));
    assert!(config.contains("max = 3"), "{config}");
    let [ours, theirs] = [ci.root(), hosts.tower.root()].map(ledger);
    assert!(ours.starts_with(&theirs), "{ours}\n{theirs}");
}
