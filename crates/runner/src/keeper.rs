//! The process that keeps one agent: it starts the command, stores its output, counts turns, and ends everything that
//! the agent has started, wherever that has gone. It does not interpret the answer.
//!
//! It is a separate process so that everything below it belongs to the agent. The daemon holds the other end of its
//! standard input: when that closes, because the daemon wants it or is gone, the keeper ends the agent.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use message_schema::spend::Spend;
use rustix::process::Pid;

use crate::cgroup::ControlGroup;
use crate::checkout::Checkout;
use crate::drain::drain;
use crate::folder::{ExitReason, Folder, Launch, Processes, RunEnd};
use crate::launch::{RAN, READ, SPENT, VALIDATED};
use crate::program;
use crate::stream::{AgentOutput, OutputReader, Unreadable};
use crate::tree::{self, Process};
use crate::validation::{self, CommandRun, Validation};

/// The most bytes of an agent's output and errors that are stored; the rest is read and dropped.
const STDOUT_MAX: u64 = 8 * 1024 * 1024;
const STDERR_MAX: u64 = 1024 * 1024;

/// The time an agent has to end after the signal.
const GRACE: Duration = Duration::from_secs(5);

/// The time that the processes it leaves behind have to end.
const GRACE_OF_THE_REST: Duration = Duration::from_millis(500);

/// The time its output has to end once none of its processes is left.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// An event that a keeper reacts to.
enum KeeperEvent {
    /// The tree is made, or cannot be made.
    Prepared(io::Result<()>),
    /// The agent ended.
    Exited(io::Result<ExitStatus>),
    /// The daemon wants the agent ended, or is gone.
    Told,
    /// The number of turns completed so far.
    Turns(u16),
    /// The spend so far.
    Spent(Spend),
    /// The agent read a file.
    Read(String),
    /// The daemon has recorded the validation commands.
    Go,
    /// The output has ended.
    Said(AgentOutput),
}

/// Keeps the agent of this folder until none of its processes is left, and writes the result into the folder.
pub fn keep(folder: &Folder) -> io::Result<()> {
    // Ctrl-C at a terminal is meant for the daemon, which ends its agents in its own way. An error means that the
    // keeper already leads a session.
    let _ = rustix::process::setsid();
    tree::become_reaper();
    let run = folder.launch()?;
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let keeper = Process::of(own);
    let mut processes = Processes {
        boot: tree::boot(),
        keeper,
        agent: None,
        group: run_name().and_then(|run| ControlGroup::make(&run)),
    };
    folder.tell_processes(&processes)?;
    let until = Instant::now() + Duration::from_secs(run.seconds_max);
    let (tell, news) = channel();
    hear_the_daemon(tell.clone());
    let begun = prepare(&run, folder, &tell, &news, until, own).and_then(|()| {
        // The system would report a missing program instead.
        if !run.workdir.is_dir() {
            let why = format!("its workdir {} is not a directory", run.workdir.display());
            return Err(ExitReason::Unprepared(why));
        }
        let begin = || start(&run, folder, &tell);
        let begun = match &processes.group {
            Some(group) => group.around(begin),
            None => begin(),
        };
        begun.map_err(|error| ExitReason::NotStarted(error.to_string()))
    });
    let end = match begun {
        Ok((agent, stored)) => {
            processes.agent = Process::of(agent.id().cast_signed());
            folder.tell_processes(&processes)?;
            let end = see_through(agent, tell, &news, until, || {
                kept(own, processes.group.as_ref())
            });
            // The last line of standard error may name the cause of a failure.
            let _ = stored.recv_timeout(LAST_WORDS);
            end
        }
        Err(how) => RunEnd {
            how,
            said: AgentOutput::default(),
        },
    };
    tree::reap();
    if let Some(group) = &processes.group {
        group.remove();
    }
    if let Some(checkout) = &run.checkout {
        // The daemon removes what is left, and can log it.
        let _ = checkout.remove();
    }
    folder.tell_end(&end)
}

/// The name of the run, unique in all workspaces; folders of several pairs may have the same name.
fn run_name() -> Option<String> {
    std::env::var("SETTLED_RUN").ok()
}

/// Reads from the daemon: a line lets the agent start, the end of the input ends it.
fn hear_the_daemon(tell: Sender<KeeperEvent>) {
    thread::spawn(move || {
        for _ in io::stdin().lines().map_while(Result::ok) {
            let _ = tell.send(KeeperEvent::Go);
        }
        tell.send(KeeperEvent::Told)
    });
}

/// Makes the run's own tree, if it has one, and runs the validation commands in it. Both take long, and the daemon may
/// want the run ended meanwhile.
fn prepare(
    run: &Launch,
    folder: &Folder,
    tell: &Sender<KeeperEvent>,
    news: &Receiver<KeeperEvent>,
    until: Instant,
    own: i32,
) -> Result<(), ExitReason> {
    let Some(checkout) = run.checkout.clone() else {
        return Ok(());
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let making = {
        let (tell, is_over) = (tell.clone(), is_over.clone());
        let (run, folder) = (run.clone(), folder.clone());
        thread::spawn(move || {
            let made = checkout
                .make()
                .and_then(|()| folder.tell_reviewed(&checkout.reviewed()));
            let made = made.and_then(|()| match &run.validation {
                Some(asked) => validate(&checkout, (&run, asked), &folder, &is_over, own),
                None => Ok(()),
            });
            // The validation commands see the whole commit; what is left out goes after them.
            let made = made.and_then(|()| checkout.leave_out());
            tell.send(KeeperEvent::Prepared(made))
        })
    };
    let next = || news.recv_timeout(until.saturating_duration_since(Instant::now()));
    if let Ok(KeeperEvent::Prepared(made)) = next() {
        made.map_err(|error| ExitReason::Unprepared(error.to_string()))?;
        if run.validation.is_none() {
            return Ok(());
        }
        report(VALIDATED);
        return match next() {
            Ok(KeeperEvent::Go) => Ok(()),
            Ok(_) | Err(_) => Err(ExitReason::Ended),
        };
    }
    is_over.store(true, Ordering::Relaxed);
    // Ends git and the commands again as often as the thread starts one.
    while !making.is_finished() {
        tree::end(|| tree::below(own), None, GRACE_OF_THE_REST);
    }
    Err(ExitReason::Ended)
}

/// Runs the commands in the tree and reports how each ended. The commands may change files, so the agent gets a
/// tree made afterwards.
fn validate(
    checkout: &Checkout,
    (run, asked): (&Launch, &Validation),
    folder: &Folder,
    is_over: &AtomicBool,
    own: i32,
) -> io::Result<()> {
    let limit = Duration::from_secs(asked.seconds_max);
    let mut runs = Vec::new();
    for command in &asked.commands {
        let mut shell = match &run.sandbox {
            Some(sandbox) => sandbox.shell(command, &run.walled(folder))?,
            None => validation::shell(command),
        };
        shell.current_dir(&checkout.tree);
        let end = validation::run(shell, limit)?;
        if is_over.load(Ordering::Relaxed) {
            // The command was cut off, so its end says nothing.
            return Err(io::Error::other("the run is over"));
        }
        let command = command.clone();
        runs.push(CommandRun { command, end });
    }
    tree::end(|| tree::below(own), None, GRACE_OF_THE_REST);
    tree::reap();
    for run in &runs {
        let run = serde_json::to_string(run).expect("texts and numbers are JSON");
        report(&format!("{RAN}{run}"));
    }
    folder.tell_validation(&runs)?;
    checkout.remove()?;
    checkout.make()
}

/// Starts the agent; returns it and what tells that all of its standard error is stored.
fn start(
    run: &Launch,
    folder: &Folder,
    tell: &Sender<KeeperEvent>,
) -> io::Result<(Child, Receiver<()>)> {
    let (program, arguments) = run
        .command
        .split_first()
        .ok_or_else(|| io::Error::other("the command is empty"))?;
    let mut command = match &run.sandbox {
        Some(sandbox) => sandbox.agent(&run.walled(folder))?,
        None => {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
    };
    let prompt = if run.reads_prompt {
        Some(std::fs::read(folder.prompt())?)
    } else {
        None
    };
    let (stdout, stderr) = (folder.log("stdout")?, folder.log("stderr")?);
    let mut child = command
        .current_dir(&run.workdir)
        // Some programs read their directory from this variable.
        .env("PWD", &run.workdir)
        .process_group(0)
        .stdin(if prompt.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| program::unstarted(&command, &error))?;
    if let (Some(prompt), Some(mut stdin)) = (prompt, child.stdin.take()) {
        // An agent that does not read its prompt has to answer for that.
        thread::spawn(move || stdin.write_all(&prompt));
    }
    let out = child.stdout.take().expect("it was piped");
    let err = child.stderr.take().expect("it was piped");
    let (reader, told) = (OutputReader::new(run.output), tell.clone());
    thread::spawn(move || listen(out, stdout, reader, &told));
    let (tell_stored, stored) = channel();
    thread::spawn(move || {
        store(err, stderr, STDERR_MAX, &mut |_| ());
        let _ = tell_stored.send(());
    });
    Ok((child, stored))
}

fn see_through(
    mut agent: Child,
    tell: Sender<KeeperEvent>,
    news: &Receiver<KeeperEvent>,
    until: Instant,
    kept: impl Fn() -> Vec<Process>,
) -> RunEnd {
    let group = Pid::from_child(&agent);
    thread::spawn(move || tell.send(KeeperEvent::Exited(agent.wait())));
    let mut said = None;
    let how = loop {
        match news.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(KeeperEvent::Exited(Ok(status))) => break how(status),
            Ok(KeeperEvent::Turns(turns)) => report(&turns.to_string()),
            Ok(KeeperEvent::Spent(spend)) => report(&spent(spend)),
            Ok(KeeperEvent::Read(file)) => report(&format!("{READ}{}", json_text(&file))),
            Ok(KeeperEvent::Said(words)) => said = Some(words),
            // Only `prepare` waits for these.
            Ok(KeeperEvent::Prepared(_) | KeeperEvent::Go) => {}
            Ok(KeeperEvent::Exited(Err(_)) | KeeperEvent::Told) | Err(_) => {
                break ExitReason::Ended;
            }
        }
    };
    let is_over = how != ExitReason::Ended;
    // Once the group's leader is reaped, the kernel may reuse its number. The members are found below the keeper
    // anyway.
    let group = (!is_over || cfg!(not(target_os = "linux"))).then_some(group);
    tree::end(kept, group, grace(&how));
    let last = Instant::now() + LAST_WORDS;
    while said.is_none()
        && let Ok(heard) = news.recv_timeout(last.saturating_duration_since(Instant::now()))
    {
        match heard {
            KeeperEvent::Said(words) => said = Some(words),
            KeeperEvent::Read(file) => report(&format!("{READ}{}", json_text(&file))),
            KeeperEvent::Prepared(_)
            | KeeperEvent::Go
            | KeeperEvent::Exited(_)
            | KeeperEvent::Told
            | KeeperEvent::Turns(_)
            | KeeperEvent::Spent(_) => {}
        }
    }
    let said = said.unwrap_or_else(|| AgentOutput {
        unreadable: Some(Unreadable::CutOff),
        ..AgentOutput::default()
    });
    RunEnd { how, said }
}

/// Returns the grace period for processes that a run left behind.
fn grace(how: &ExitReason) -> Duration {
    match how {
        ExitReason::Ended => GRACE,
        ExitReason::Code(_)
        | ExitReason::Signal(_)
        | ExitReason::NotStarted(_)
        | ExitReason::Unprepared(_) => GRACE_OF_THE_REST,
    }
}

/// The processes below the keeper and in the control group. If there are none, it reaps zombies: with them the process
/// group would still seem to exist, and the keeper would wait for the whole grace period.
fn kept(own: i32, group: Option<&ControlGroup>) -> Vec<Process> {
    let mut kept = tree::below(own);
    let members = group.into_iter().flat_map(ControlGroup::members);
    kept.extend(members.filter(|member| member.pid != own));
    if kept.is_empty() {
        tree::reap();
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

fn how(status: ExitStatus) -> ExitReason {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitReason::Code(code),
        (None, signal) => ExitReason::Signal(signal.unwrap_or(0)),
    }
}

/// The note about the spend, on one line.
fn spent(spend: Spend) -> String {
    let spend = serde_json::to_string(&spend).expect("numbers are JSON");
    format!("{SPENT}{spend}")
}

/// A file's name on one line.
fn json_text(file: &str) -> String {
    serde_json::to_string(file).expect("a text is JSON")
}

/// Reports a note to the daemon, on one line. Does nothing if the daemon has ended.
fn report(note: &str) {
    let mut out = io::stdout();
    let _ = writeln!(out, "{note}").and_then(|()| out.flush());
}

fn listen(out: impl Read, file: File, mut reader: OutputReader, tell: &Sender<KeeperEvent>) {
    let (mut told, mut spent) = (0, Spend::default());
    store(out, file, STDOUT_MAX, &mut |bytes| {
        reader.read(bytes);
        for file in reader.take_reads() {
            let _ = tell.send(KeeperEvent::Read(file));
        }
        // Spend that comes with the answer is reported with the end, so that the daemon handles the answer first.
        if reader.spend() != spent && !reader.is_done() {
            spent = reader.spend();
            let _ = tell.send(KeeperEvent::Spent(spent));
        }
        if reader.completed() > told {
            told = reader.completed();
            // Once the keeper is done, nobody receives this.
            let _ = tell.send(KeeperEvent::Turns(told));
        }
    });
    let _ = tell.send(KeeperEvent::Said(reader.finish()));
}

/// Reads everything and stores the first `max` bytes. On a full disk it continues to read without storing.
fn store(from: impl Read, mut file: File, max: u64, seen: &mut dyn FnMut(&[u8])) {
    let mut left = max;
    drain(from, |bytes| {
        let stored = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        left -= stored as u64;
        let _ = file.write_all(&bytes[..stored]);
        seen(bytes);
    });
}

#[cfg(test)]
mod tests {
    use std::io::BufRead as _;

    use super::*;
    use crate::stream::OutputFormat;

    /// The numbers of bytes stored and read of an output of `bytes` bytes.
    fn stored(bytes: u64, max: u64) -> (u64, u64) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("printed");
        let mut read = 0;
        let file = File::create(&path).expect("a file");
        store(io::repeat(b'x').take(bytes), file, max, &mut |some| {
            read += some.len() as u64;
        });
        (path.metadata().expect("the file").len(), read)
    }

    #[test]
    fn the_first_8_mib_and_1_mib_of_what_is_printed_are_stored_and_the_rest_is_read() {
        const MIB: u64 = 1024 * 1024;
        for (max, mib) in [(STDOUT_MAX, 8), (STDERR_MAX, 1)] {
            assert_eq!(stored(mib * MIB, max), (mib * MIB, mib * MIB));
            let more = mib * MIB + 100_000;
            assert_eq!(stored(more, max), (mib * MIB, more));
        }
    }

    /// A source that gives each of these in turn.
    struct Pieces(Vec<io::Result<&'static [u8]>>);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let piece = self.0.remove(0)?;
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    #[test]
    fn an_output_is_read_on_after_an_interruption_and_not_after_an_error() {
        let error = |kind: io::ErrorKind| Err(io::Error::from(kind));
        let pieces = Pieces(vec![
            Ok(b"a"),
            error(io::ErrorKind::Interrupted),
            Ok(b"b"),
            error(io::ErrorKind::Other),
            Ok(b"c"),
            Ok(b""),
        ]);
        let file = tempfile::tempfile().expect("a file");
        let mut read = Vec::new();
        store(pieces, file, 8, &mut |some| read.extend_from_slice(some));
        assert_eq!(read, b"ab");
    }

    #[test]
    fn each_read_turn_and_spend_is_told_once_and_what_comes_with_the_answer_at_the_end() {
        let lines = [
            r#"{"type":"assistant","message":{"id":"a","usage":{"input_tokens":5},"content":[{"type":"tool_use","id":"c","name":"Read","input":{"file_path":"a.rs"}}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c"}]}}"#,
            r#"{"type":"assistant","message":{"id":"b","usage":{"input_tokens":1}}}"#,
            r#"{"type":"assistant","message":{"id":"b","usage":{"input_tokens":1}}}"#,
            r#"{"type":"result","subtype":"success","result":"PASS","usage":{"input_tokens":9}}"#,
        ];
        let pieces = lines.iter().flat_map(|line| [line.as_bytes(), b"\n"]);
        let pieces = Pieces(pieces.chain([&b""[..]]).map(Ok).collect());
        let (tell, news) = channel();
        let file = tempfile::tempfile().expect("a file");
        listen(pieces, file, OutputReader::new(OutputFormat::Claude), &tell);
        drop(tell);
        let told = news.iter().map(|event| match event {
            KeeperEvent::Turns(turns) => format!("{turns} turns"),
            KeeperEvent::Spent(spend) => format!("{} tokens", spend.tokens),
            KeeperEvent::Read(file) => file,
            KeeperEvent::Said(said) => format!("{} for {} tokens", said.text, said.spend.tokens),
            KeeperEvent::Prepared(_)
            | KeeperEvent::Exited(_)
            | KeeperEvent::Told
            | KeeperEvent::Go => "something else".to_owned(),
        });
        assert_eq!(
            Vec::from_iter(told),
            [
                "5 tokens",
                "a.rs",
                "6 tokens",
                "1 turns",
                "PASS for 9 tokens"
            ]
        );
    }

    #[test]
    fn an_output_whose_end_never_comes_is_cut_off() {
        let (tell, news) = channel();
        let agent = Command::new("sh").args(["-c", "exit 4"]).spawn();
        let until = Instant::now() + Duration::from_secs(600);
        let end = see_through(agent.expect("a shell"), tell, &news, until, Vec::new);
        assert_eq!(end.how, ExitReason::Code(4));
        assert_eq!(end.said.unreadable, Some(Unreadable::CutOff));
    }

    #[test]
    fn an_agent_has_5_s_to_end_and_what_one_leaves_behind_half_a_second() {
        assert_eq!(grace(&ExitReason::Ended), Duration::from_secs(5));
        for how in [ExitReason::Code(0), ExitReason::Signal(9)] {
            assert_eq!(grace(&how), Duration::from_millis(500), "{how:?}");
        }
    }

    /// Once the leader is gone, its group's number may be another's, and the rest is found below the keeper, where this
    /// test finds nothing.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_group_of_an_agent_is_ended_with_it_and_left_alone_after_it() {
        for (script, until, how, is_left) in [
            ("echo $$; exec sleep 300", 0, ExitReason::Ended, false),
            (
                "sleep 300 & echo $!; exit 4",
                600,
                ExitReason::Code(4),
                true,
            ),
        ] {
            let agent = Command::new("sh")
                .args(["-c", script])
                .process_group(0)
                .stdout(Stdio::piped())
                .spawn();
            let mut agent = agent.expect("a shell");
            let out = agent.stdout.take().expect("it was piped");
            let mut line = String::new();
            io::BufReader::new(out)
                .read_line(&mut line)
                .expect("a number");
            let process = Process::of(line.trim().parse().expect("a number"));
            let process = process.expect("it runs");
            let (tell, news) = channel();
            let until = Instant::now() + Duration::from_secs(until);
            let end = see_through(agent, tell, &news, until, Vec::new);
            let found = process.is_running();
            process.signal(rustix::process::Signal::KILL);
            assert_eq!((end.how, found), (how, is_left), "{script}");
        }
    }

    /// A plain directory takes the place of a control group, and one process that of a keeper which could not leave it.
    #[test]
    fn a_keeper_ends_every_member_of_its_control_group_but_itself() {
        let group = tempfile::tempdir().expect("a directory");
        let start = || Command::new("sleep").arg("300").spawn().expect("sleep");
        let mut started = [start(), start()];
        let [own, other] = [&started[0], &started[1]].map(|child| child.id().cast_signed());
        let members = format!("{own}\n{other}\n");
        std::fs::write(group.path().join("cgroup.procs"), members).expect("a list");
        let of_group = serde_json::to_value(group.path()).and_then(serde_json::from_value);
        let of_group: ControlGroup = of_group.expect("a path");
        let (found, expected) = (kept(own, Some(&of_group)), Process::of(other));
        for child in &mut started {
            child.kill().and_then(|()| child.wait()).expect("its end");
        }
        assert_eq!(found, [expected.expect("it ran")]);
    }
}
