//! Short forms of `cargo xtask crash`: the daemon is killed at calls and at random moments, and no message is lost,
//! duplicated or partially visible.

use settled_tests::mailroom::settled;
use settled_tests::names;
use settled_torture::checker;
use settled_torture::crash::scene::Scene;
use settled_torture::crash::storm::storm;
use settled_torture::crash::sweep::{Form, Tally, sweep};
use settled_torture::messages::Mix;

fn swept(scenes: &[Scene], form: Form) -> Tally {
    let mut tally = Tally::default();
    for scene in scenes {
        tally.join(sweep(scene, form, &|_, _| {}));
    }
    tally
}

#[test]
fn the_steps_of_the_review_reach_every_kind_of_file_and_every_lane() {
    let scenes = Scene::of_review();
    let directory = settled_tests::scratch();
    let root = directory.path().join("mailroom");
    scenes.last().expect("it has steps").lay_out(&root);
    settled()
        .arg("serve")
        .arg(&root)
        .arg("--once")
        .output()
        .expect("settled can be run");
    let records = checker::records(&root).expect("a whole ledger");
    let kinds: Vec<&str> = records
        .iter()
        .filter_map(|record| record["kind"].as_str())
        .collect();
    for kind in ["accepted", "turns", "decided", "pull"] {
        assert!(kinds.contains(&kind), "{kind} is not among {kinds:?}");
    }
    assert!(
        !kinds.contains(&"declined") && !kinds.contains(&"refused"),
        "{kinds:?}"
    );
    for place in [
        "packets/findings",
        "packets/handoff",
        "packets/briefs",
        "events/pr/86",
    ] {
        assert!(
            !names(root.join(place)).is_empty(),
            "nothing was made in {place}"
        );
    }
}

#[test]
fn a_kill_at_a_call_and_in_the_recovery_and_in_the_recovery_of_that_has_no_effect() {
    let form = Form {
        writing: 1,
        others: 13,
        again: 11,
        threads: 4,
    };
    let tally = swept(&[Scene::of_mix(Mix::Several, 4)], form);
    assert_eq!(tally.wrong, [""; 0]);
    assert!(
        tally.hit() >= 100 && tally.second >= 8 && tally.third >= 3,
        "{tally:?}"
    );
    for call in ["fdatasync", "renameat2", "pwrite64", "openat"] {
        assert!(
            tally.points.contains_key(call),
            "no run was killed at {call}: {tally:?}"
        );
    }
}

#[test]
fn a_kill_at_any_step_of_a_review_has_no_effect() {
    let form = Form {
        writing: 8,
        others: 120,
        again: 8,
        threads: 4,
    };
    let tally = swept(&Scene::of_review(), form);
    assert_eq!(tally.wrong, [""; 0]);
    assert!(tally.hit() >= 60, "{tally:?}");
}

#[test]
fn sixty_kills_under_load_lose_nothing_and_repeat_nothing() {
    let damage = storm(60, 0x5e77_1ed0_2026_1122, &|_| {});
    assert_eq!(damage.wrong, [""; 0], "{damage:?}");
    assert_eq!(
        (damage.kills, damage.lost, damage.duplicated, damage.partial),
        (60, 0, 0, 0),
        "{damage:?}"
    );
    assert!(
        damage.messages >= 100 && damage.arrived >= 100 && damage.in_recovery >= 5,
        "{damage:?}"
    );
}
