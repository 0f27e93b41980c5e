//! Starts a run: makes its folder with everything the agent gets, then its keeper. The folder exists before the ledger
//! records the start, so any later failure is a failed start.

use std::io;
use std::path::Path;

use mailbox::mailboxes::{AgentMailboxes, MailboxPlace};
use message_schema::envelope::{MessageType, ReviewKind};
use message_schema::id::{AgentName, CommitSha, MessageId};
use review::{Review, ReviewKey};
use runner::folder::{Folder, Launch};
use runner::launch::{self, KeeperNote, RunIdentity};
use runner::prompt;
use runner::validation::Validation;
use tokio::sync::mpsc::UnboundedSender;
use workspace::clock::Moment;
use workspace::config::{AgentSection, Config, Input};
use workspace::error::chain;
use workspace::regular_file;

use super::Run;
use super::live::Live;
use super::place::{CodePlace, PlaceQuestion};
use crate::mailroom::Mailroom;

/// The seconds after its deadline at which the keeper ends an agent that the daemon did not end.
const SLACK_S: i64 = 5;

/// The type of the message that a command is started for.
const REQUEST: MessageType = MessageType::Review(ReviewKind::Request);

/// The text that an agent reads if its request was removed from its inbox.
const NO_REQUEST: &str = "# The request has left your mailboxes; the brief has its content.\n";

/// The question on which files a run for this review works; `None` if its request is over.
pub(super) fn place_question(mailroom: &Mailroom, key: &ReviewKey) -> Option<PlaceQuestion> {
    let review = mailroom.review(key)?;
    let agent = mailroom.config().agents.get(review.reviewer(key))?;
    Some(PlaceQuestion {
        root: mailroom.root().to_owned(),
        agent: agent.clone(),
        base: review.reading.change.base.clone(),
        head: review.phase.invocation()?.head.clone(),
    })
}

/// Makes the folder of a run with the request in it. If that fails, the disk is full or `.settled` is not writable, and
/// the ledger gets no start.
pub(super) fn prepare(mailroom: &Mailroom, key: &ReviewKey, id: &str) -> io::Result<Folder> {
    let review = mailroom.review(key).ok_or_else(gone)?;
    let open = review.phase.invocation().ok_or_else(gone)?;
    let folder = Folder::make(mailroom.root(), id)?;
    let request = request(mailroom.root(), review.reviewer(key), &open.request);
    if let Err(error) = Folder::write(&folder.request(), request.as_deref().unwrap_or(NO_REQUEST)) {
        folder.remove();
        return Err(error);
    }
    Ok(folder)
}

fn gone() -> io::Error {
    io::Error::other("the request is gone")
}

pub(super) fn start(
    mailroom: &Mailroom,
    key: &ReviewKey,
    (folder, mut place): (Folder, CodePlace),
    sender: &UnboundedSender<(String, KeeperNote)>,
    now: Moment,
) -> io::Result<Live> {
    let review = mailroom.review(key).ok_or_else(gone)?;
    let reviewer = review.reviewer(key);
    let agent = mailroom.config().agents.get(reviewer).ok_or_else(gone)?;
    let id = folder.id().to_owned();
    let (brief, schema) = mailroom.brief_now(key, now).ok_or_else(gone)?;
    Folder::write(&folder.brief(), &brief)?;
    Folder::write(&folder.schema(), &schema)?;
    folder.write_wrapper(mailroom.root(), reviewer)?;
    let open = review.phase.invocation().ok_or_else(gone)?;

    if let Some(checkout) = &mut place.checkout {
        checkout.mib_max = mailroom.config().runner.tree_mib_max;
    }
    let seconds_left = review
        .deadline()
        .map_or(0, |(at, _)| (at - now.utc).num_seconds());
    let mut values = prompt_values(mailroom, key, review, (&folder, &place), seconds_left);
    let prompt = prompt::fill(&template(mailroom.root(), agent)?, &values);
    Folder::write(&folder.prompt(), &prompt)?;
    values.extend([("prompt", prompt), ("schema_json", schema)]);
    let fill = |text: &String| prompt::fill_word(text, &values);
    // All starts of a round share its time. If it was nearly over before, an earlier start has logged that.
    let warn_s = i64::try_from(mailroom.config().runner.warn_s).unwrap_or(i64::MAX);
    let is_warned = open.starts > 1 && seconds_left < warn_s;
    let run = Run {
        schema_version: 1,
        id: id.clone(),
        review: key.clone(),
        reassigned_to: review.reassigned_to.clone(),
        request: open.request.clone(),
        start: open.starts,
        launch: Launch {
            command: command(agent, mailroom.root(), fill),
            validation: validation(mailroom.config(), key, review, &place),
            workdir: place.workdir,
            checkout: place.checkout,
            sandbox: agent
                .sandbox
                .as_ref()
                .map(|section| section.around(mailroom.root(), agent.env.keys())),
            reads_prompt: agent.stdin == Input::Prompt,
            output: agent.output,
            seconds_max: u64::try_from(seconds_left.saturating_add(SLACK_S)).unwrap_or(0),
        },
    };
    folder.tell_run(&run)?;
    let env = agent.env.iter();
    let env = env.map(|(name, value)| (name.clone(), fill(value)));
    let identity = RunIdentity {
        root: mailroom.root(),
        agent: reviewer,
        run: &id,
        env: &env.collect(),
    };
    let mut keeper = launch::keeper(&folder, &identity)?;
    let notes = keeper.stdout.take().expect("it was piped");
    tracing::info!(review = %key, run = id, start = open.starts, "started a command");
    let sender = sender.clone();
    // If the daemon has ended, nobody receives the note.
    launch::listen(notes, move |note| drop(sender.send((id.clone(), note))));
    Ok(Live::new(run, folder, keeper, is_warned))
}

/// The words of the command. A relative path to a program is relative to the agent's `workdir`, never to the commit
/// under review: otherwise its author could choose the reviewer.
fn command(agent: &AgentSection, root: &Path, fill: impl Fn(&String) -> String) -> Vec<String> {
    let mut words: Vec<String> = agent.command.iter().map(fill).collect();
    if let Some(program) = words.first_mut().filter(|program| program.contains('/')) {
        // `join` keeps an absolute path as it is.
        let whole = root.join(&agent.workdir).join(&*program);
        *program = whole.display().to_string();
    }
    words
}

/// The validation commands of this project that are not known to have run on this commit. Only the config names them,
/// because those in a request come from the author. They run code of the commit, so none run for an author that has a
/// user of its own: that code must not run as the daemon's user.
pub(super) fn validation(
    config: &Config,
    key: &ReviewKey,
    review: &Review,
    place: &CodePlace,
) -> Option<Validation> {
    let commit = &place.checkout.as_ref()?.commit;
    let is_on_it = |on: &CommitSha| on.same_commit(commit);
    let is_known = |command: &&String| {
        let mut runs = review.reading.runs.iter();
        runs.any(|run| run.command == **command && run.head.as_ref().is_some_and(is_on_it))
    };
    let commands = config.gate.validation_commands.iter();
    let commands: Vec<String> = commands.filter(|it| !is_known(it)).cloned().collect();
    let author = config.agents.get(&key.author);
    let is_kept_apart = author.is_some_and(|author| author.uid.is_some());
    let seconds_max = config.runner.validation_s;
    (!commands.is_empty() && seconds_max > 0 && !is_kept_apart).then_some(Validation {
        commands,
        seconds_max,
    })
}

/// The values that a prompt may contain: numbers, names of agents and paths of the daemon.
fn prompt_values(
    mailroom: &Mailroom,
    key: &ReviewKey,
    review: &Review,
    (folder, place): (&Folder, &CodePlace),
    seconds: i64,
) -> Vec<(&'static str, String)> {
    let turns = review
        .phase
        .invocation()
        .map_or(0, review::Invocation::turns_left);
    let words = &mailroom.config().runner;
    vec![
        ("agent", review.reviewer(key).to_string()),
        ("author", key.author.to_string()),
        ("pr", key.pr.to_string()),
        ("round", review.round.to_string()),
        ("turns", turns.to_string()),
        ("seconds", seconds.to_string()),
        ("brief", folder.brief().display().to_string()),
        ("request", folder.request().display().to_string()),
        ("schema", folder.schema().display().to_string()),
        ("settled", folder.wrapper().display().to_string()),
        ("run", folder.path().display().to_string()),
        ("workdir", place.workdir.display().to_string()),
        ("tree", place.tree().display().to_string()),
        ("root", mailroom.root().display().to_string()),
        ("pass", words.pass.clone()),
        ("fail", words.fail.clone()),
    ]
}

pub(super) fn template(root: &Path, agent: &AgentSection) -> io::Result<String> {
    if agent.prompt.as_os_str().is_empty() {
        return Ok(prompt::BUILT_IN.to_owned());
    }
    // An agent may put a pipe in its place, and a plain read would wait for a writer.
    let read = regular_file::read_followed(&root.join(&agent.prompt), prompt::TEMPLATE_MAX);
    let text = read.and_then(|bytes| match bytes.map(String::from_utf8) {
        Some(Ok(text)) => Ok(text),
        Some(Err(error)) => Err(io::Error::other(error)),
        None => Err(io::Error::other(format!(
            "{} is no regular file of at most {} bytes",
            agent.prompt.display(),
            prompt::TEMPLATE_MAX
        ))),
    });
    text.map_err(|error| io::Error::new(error.kind(), format!("the prompt's template: {error}")))
}

/// The text of the request, wherever the agent has moved it; nothing if it is not delivered yet or is gone. The sender
/// chose the file's name, so the agent gets a copy.
pub(super) fn request(root: &Path, me: &AgentName, id: &MessageId) -> Option<String> {
    let places = [
        MailboxPlace::Inbox,
        MailboxPlace::Taken,
        MailboxPlace::Archive,
    ];
    let found = AgentMailboxes::new(root, me).with_id(&places, id, REQUEST);
    found.map(|request| request.text)
}

/// Moves a request that is over into the archive of the agent that was started for it: nobody else empties that inbox.
pub(super) fn put_away(root: &Path, run: &Run) {
    let mailboxes = AgentMailboxes::new(root, run.agent());
    let places = [MailboxPlace::Inbox, MailboxPlace::Taken];
    if let Some(request) = mailboxes.with_id(&places, &run.request, REQUEST)
        && let Err(error) = mailboxes.put_away(&request)
    {
        tracing::warn!(review = %run.review, error = %chain(&error), "could not archive a request that is over");
    }
}
