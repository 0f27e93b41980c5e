//! Small commands of agents on a large ledger, each as a process, from its start to its end.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::figures::{Result, quantile};
use super::ground::Ground;
use super::room;

/// The number of times each command runs.
const TIMES: usize = 500;

/// The number of unread messages in the inbox.
const UNREAD: usize = 20;

/// The commands, and the milliseconds within which 99 of 100 have to end.
const QUESTIONS: [(&str, &[&str], &str); 5] = [
    ("settled inbox --json", &["inbox", "--json"], "5"),
    (
        "settled hook session-start",
        &["hook", "session-start"],
        "5",
    ),
    ("settled hook turn-end", &["hook", "turn-end"], "5"),
    ("settled (folds the ledger)", &[], ""),
    (
        "settled status --json (folds the ledger)",
        &["status", "--json"],
        "",
    ),
];

pub(crate) fn run(ground: &Ground, messages: usize) -> Result<()> {
    let root = ground.fresh("asks")?;
    room::init(&root)?;
    for number in 1..=messages {
        std::fs::write(
            root.join(format!("agents/claude/outbox/{number:06}.yaml")),
            room::request(number),
        )?;
    }
    room::once(&root)?;
    let inbox = root.join("agents/codex/inbox");
    for (at, entry) in std::fs::read_dir(&inbox)?
        .collect::<Vec<_>>()
        .into_iter()
        .enumerate()
    {
        let path = entry?.path();
        if at >= UNREAD {
            let name = path.file_name().ok_or("a file has a name")?;
            std::fs::rename(&path, root.join("agents/codex/archive").join(name))?;
        }
    }
    let served = room::Served::start(&root)?;
    println!(
        "small questions, {messages} messages in the ledger, {UNREAD} unread, a daemon serving, {TIMES} times each"
    );
    println!("                                            median        p99");
    let mut idle = Command::new("/bin/true");
    line("a process that does nothing", &mut idle, &root, "")?;
    for (name, args, most) in QUESTIONS {
        line(name, Command::new(room::settled()).args(args), &root, most)?;
    }
    println!();
    drop(served);
    Ok(())
}

fn line(name: &str, command: &mut Command, root: &Path, most: &str) -> Result<()> {
    command
        .env("SETTLED_ROOT", root)
        .env("SETTLED_AGENT", "codex");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut times = Vec::with_capacity(TIMES);
    // The first runs bring the program into memory.
    for round in 0..TIMES + 10 {
        let start = Instant::now();
        let status = command.status()?;
        if !status.success() {
            return Err(format!("{name}: {status}").into());
        }
        if round >= 10 {
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    let (median, most_of) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
    let reach = if most.is_empty() {
        String::new()
    } else {
        format!("   to reach: {most} ms")
    };
    println!("  {name:<40} {median:>6.2} ms {most_of:>7.2} ms{reach}");
    Ok(())
}
