//! Long jobs for developers: `cargo xtask agents|bench|crash|dist|faults|powerloss|soak|fuzz|hosts|hosts-real|house|model|mutants|systemd|site`.

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
mod model;
mod mutants;
mod powerloss;
mod site;
mod soak;
mod systemd;

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
    /// Play every row of `docs/agents.md` with the real agents' programs
    Agents(agents::Args),
    /// Measure the real binary, each figure beside its physical limit or peer
    Bench(bench::Args),
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    /// Kill the daemon at every system call, and at random under load; check what is left
    Crash(crash::Args),
    /// Make each system call of the daemon fail in turn; check what is left
    Faults(faults::Args),
    /// Walk every reachable state of a review; check every law at every step
    Model(model::Args),
    /// Cut the power at any instant of a run; check every promise on the disk that is left
    Powerloss(powerloss::Args),
    /// Load a daemon with agents of every kind; check that every review ends and nothing grows
    Soak(soak::Args),
    /// Share a log that loses, delays and repeats among three hosts; check that they agree
    Hosts(hosts::Args),
    /// Share a ledger in real brokers among three hosts; cut links, stop and kill processes
    HostsReal(hosts_real::Args),
    /// Run one of those hosts; `hosts-real` starts this
    #[command(hide = true)]
    HostsRealHost(hosts_real::HostArgs),
    /// Count lines, public names, import circles and duplicate names of each room
    House(house::Args),
    /// Apply each mutant to a copy of the code; name the test that catches it
    Mutants(mutants::Args),
    /// Install the Debian package on a machine in qemu; check the service under its systemd
    Systemd(systemd::Args),
    /// Build the documents as a site with mdBook; check every link
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
    /// Fuzz each parser, or the whole daemon, for a limited time
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
        Job::Model(args) => model::run(&args),
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
