//! Long jobs for developers: `cargo xtask agents|bench|crash|dist|faults|powerloss|soak|fuzz|walk|hosts|hosts-real|house|mutants|systemd|site`.

#![expect(
    clippy::print_stdout,
    reason = "a developer's tool talks on standard output"
)]

mod agents;
mod bench;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod crash;
mod deb;
mod dist;
mod faults;
mod fuzz;
mod hosts;
mod hosts_real;
mod house;
mod mutants;
mod powerloss;
mod site;
mod soak;
mod systemd;
mod walk;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Long jobs for developers
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    job: Job,
}

#[derive(Debug, Subcommand)]
enum Job {
    /// Play every row of `docs/agents.md` with the real programs of others
    Agents(agents::Args),
    /// Measure the real binary, each figure beside the physical limit it is compared with
    Bench(bench::Args),
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    /// Kill the daemon at every system call and at random under load, and look at what is left
    Crash(crash::Args),
    /// Make every call of the daemon fail, one after the other, and look at what is left
    Faults(faults::Args),
    /// Walk every reachable state of a review and check every law on every step
    Walk(walk::Args),
    /// Cut the power at any instant of a run and check what is left of what was promised
    Powerloss(powerloss::Args),
    /// Let agents of every kind write to a daemon for a while, and look whether anything grows or never ends
    Soak(soak::Args),
    /// Let three hosts share a log that loses, delays and repeats, and look whether they agree
    Hosts(hosts::Args),
    /// Let three hosts share a ledger in real brokers while links are cut and processes are stopped and killed
    HostsReal(hosts_real::Args),
    /// One of those hosts; `hosts-real` starts it
    #[command(hide = true)]
    HostsRealHost(hosts_real::HostArgs),
    /// Count what the rooms are made of: lines, public names, circles of imports, names given twice
    House(house::Args),
    /// Break the code in a copy, one mutant after the other, and name the test that notices each
    Mutants(mutants::Args),
    /// Install the Debian package on a machine in qemu, and look at the service under its systemd
    Systemd(systemd::Args),
    /// Build the documents as a site with mdBook, and follow every link of it
    Site(site::Args),
    /// Run a program and print its wall time, processor time and peak memory; `bench validate` starts it
    #[command(hide = true)]
    Measure {
        /// The program and its arguments
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Make the Debian package of the programs in the build folder; `dist` and the tests start it
    #[command(hide = true)]
    Deb(deb::Args),
    /// Pack what people install: archive, Debian package, wheel, npm packages, hooks, bill of materials
    Dist(dist::Args),
    /// Give each reader what a fuzzer thinks of, for a while
    Fuzz(fuzz::Args),
}

fn main() -> ExitCode {
    let Cli { job } = Cli::parse();
    let is_good = match job {
        Job::Agents(args) => agents::run(&args).unwrap_or_else(|error| {
            println!("agents: {error}");
            false
        }),
        Job::Bench(args) => bench::run(&args)
            .inspect_err(|error| println!("bench: {error}"))
            .is_ok(),
        Job::Measure { command } => bench::measure(&command)
            .inspect_err(|error| println!("{error}"))
            .is_ok(),
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        Job::Crash(args) => crash::run(&args),
        Job::Faults(args) => faults::run(&args),
        Job::Site(args) => site::run(&args).unwrap_or_else(|error| {
            println!("site: {error}");
            false
        }),
        Job::Soak(args) => soak::run(&args),
        Job::Hosts(args) => hosts::run(&args).unwrap_or_else(|error| {
            println!("hosts: {error}");
            false
        }),
        Job::HostsReal(args) => hosts_real::run(&args).unwrap_or_else(|error| {
            println!("hosts-real: {error}");
            false
        }),
        Job::HostsRealHost(args) => hosts_real::serve(&args)
            .inspect_err(|error| println!("{error}"))
            .is_ok(),
        Job::House(args) => house::run(&args),
        Job::Walk(args) => walk::walk(&args),
        Job::Deb(args) => deb::run(&args).unwrap_or_else(|error| {
            println!("deb: {error}");
            false
        }),
        Job::Dist(args) => dist::run(&args).unwrap_or_else(|error| {
            println!("dist: {error}");
            false
        }),
        Job::Fuzz(args) => fuzz::run(&args).unwrap_or_else(|error| {
            println!("fuzz: {error}");
            false
        }),
        Job::Powerloss(args) => powerloss::run(&args).unwrap_or_else(|error| {
            println!("powerloss: {error}");
            false
        }),
        Job::Systemd(args) => systemd::run(&args).unwrap_or_else(|error| {
            println!("systemd: {error}");
            false
        }),
        Job::Mutants(args) => mutants::run(&args).unwrap_or_else(|error| {
            println!("mutants: {error}");
            false
        }),
    };
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
