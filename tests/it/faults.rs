//! The short form of `cargo xtask faults`: every failing call of the daemon.

use settled_torture::faults::{Campaign, Extent, Scene};
use settled_torture::messages::Mix;

#[test]
fn no_failing_call_loses_doubles_or_refuses_anything() {
    let scenes = [Scene::Fresh(Mix::Several), Scene::Killed(Mix::Several)];
    let campaign = Campaign::run(&scenes, Extent::OneIn(12), None, 4, &|_, _| {});
    assert!(
        campaign.faults() > 60,
        "too few calls were made to fail:\n{campaign}"
    );
    assert!(
        campaign.wrong.is_empty(),
        "{campaign}\n{}",
        campaign.wrong.join("\n\n")
    );
}
