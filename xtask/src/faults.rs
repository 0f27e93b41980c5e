//! `cargo xtask faults`: every call of every mix with every error, once and permanently.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use clap::Args as ClapArgs;
use settled_torture::faults::{CALLS, Campaign, Extent, Scene};

/// Make each system call of the daemon fail in turn; check what is left
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Only this mix of messages: notes, requests, refusals or several
    #[arg(long, value_name = "MIX")]
    mix: Option<String>,
    /// Only this call, such as `fdatasync`
    #[arg(long, value_name = "CALL")]
    call: Option<String>,
    /// Fail one call in this many, each with one error, instead of all
    #[arg(long, value_name = "N")]
    one_in: Option<usize>,
    /// Number of daemons at a time; most of them only wait
    #[arg(long, default_value_t = 6)]
    threads: usize,
}

/// Runs all of it; returns true if nothing was wrong.
pub(crate) fn run(args: &Args) -> bool {
    let is_asked = |scene: &Scene| {
        args.mix
            .as_ref()
            .is_none_or(|mix| format!("{:?}", scene.mix()).eq_ignore_ascii_case(mix))
    };
    let scenes: Vec<Scene> = Scene::all().into_iter().filter(is_asked).collect();
    let call = args.call.as_deref();
    if scenes.is_empty() || call.is_some_and(|name| CALLS.iter().all(|call| call.name != name)) {
        println!("faults: there is no such mix, or no such call among those that are made to fail");
        return false;
    }
    let began = Instant::now();
    let shown = AtomicUsize::new(0);
    let extent = args.one_in.map_or(Extent::Long, Extent::OneIn);
    let campaign = Campaign::run(&scenes, extent, call, args.threads.max(1), &|done, all| {
        if done / 100 > shown.swap(done / 100, Ordering::Relaxed) {
            tell(&format!(
                "{done} of {all} faults, {:.0} s",
                began.elapsed().as_secs_f64()
            ));
        }
    });
    for wrong in &campaign.wrong {
        println!("{wrong}\n");
    }
    println!("{campaign}");
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{} faults, {seconds:.0} s: {} with something wrong",
        campaign.faults(),
        campaign.wrong.len()
    );
    campaign.wrong.is_empty() && campaign.faults() > 0
}

#[expect(clippy::print_stderr, reason = "progress is not the result")]
fn tell(text: &str) {
    eprintln!("{text}");
}
