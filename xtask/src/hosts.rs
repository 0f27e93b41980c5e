//! `cargo xtask hosts`: three hosts and one simulated log, for many seeds. The long form of
//! `crates/daemon/tests/it/hosts/storms.rs`.

use std::path::Path;

use clap::Args as ClapArgs;
use settled_tests::binaries;

/// Share a log that loses, delays and repeats among three hosts; check that they agree
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Number of seeds
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "S", default_value_t = 0)]
    first: u64,
}

/// Runs it; returns true if all hosts agreed.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let status = binaries::cargo()
        .args([
            "test",
            "--release",
            "-p",
            "daemon",
            "--test",
            "it",
            "--",
            "--nocapture",
        ])
        // In a storm, and in one in which the log breaks its promise, each on its own thread.
        .arg("hosts::storms::three_hosts")
        .env("HOSTS_SEEDS", args.seeds.to_string())
        .env("HOSTS_FIRST_SEED", args.first.to_string())
        .envs(in_memory())
        .status()
        .map_err(|error| error.to_string())?;
    Ok(status.success())
}

/// Puts the workspaces in memory if the system allows: nobody cuts the power here, and disk syncs would take most of a
/// run.
fn in_memory() -> Option<(&'static str, &'static str)> {
    let is_free = std::env::var_os("TMPDIR").is_none() && Path::new("/dev/shm").is_dir();
    is_free.then_some(("TMPDIR", "/dev/shm"))
}
