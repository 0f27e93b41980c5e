//! `cargo xtask systemd`: the Debian package on its own machine, booted by a real systemd in qemu, and the checks of
//! `checks.sh` in it. The machine loses power once in the middle. The output says what it ran on.

mod image;
mod machine;

use std::time::Instant;

use image::Tree;
use machine::Told;

/// The programs that the machine needs, and the Debian packages that provide them.
const NEEDED: [(&str, &str); 3] = [
    ("debootstrap", "debootstrap"),
    ("mke2fs", "e2fsprogs"),
    ("qemu-system-x86_64", "qemu-system-x86"),
];

/// Install the Debian package on a machine in qemu; check the service under its systemd
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the machine's console
    #[arg(long)]
    verbose: bool,
}

/// Runs it; returns true if every check passed.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let is_there = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
    };
    let missing: Vec<&str> = NEEDED
        .iter()
        .filter(|(program, _)| !is_there(program))
        .map(|(_, package)| *package)
        .collect();
    if !missing.is_empty() {
        return Err(format!(
            "nothing was checked: apt-get install {}",
            missing.join(" ")
        ));
    }
    let package = settled_tests::debian::package();
    let tree = Tree::cached()?;
    tree.furnish(package)?;
    let image = tree.image()?;
    let began = Instant::now();
    let told = machine::boot(&tree, &image, args.verbose)?;
    print(&told, began.elapsed().as_secs_f64());
    Ok(told.is_complete && told.failed() == 0)
}

fn print(told: &Told, seconds: f64) {
    for line in &told.facts {
        println!("{line}");
    }
    println!();
    for check in &told.checks {
        println!(
            "{}  {}",
            if check.passed { "ok    " } else { "FAILED" },
            check.name
        );
        for line in &check.said {
            println!("        {line}");
        }
    }
    let (all, failed) = (told.checks.len(), told.failed());
    println!(
        "\n{} passed, {failed} failed; {seconds:.0} s on the machine",
        all - failed
    );
    if !told.is_complete {
        println!(
            "the machine stopped before its last check; its console: {}",
            told.console.display()
        );
    }
}
