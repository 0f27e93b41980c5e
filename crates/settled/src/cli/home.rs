//! `settled` alone, and `settled robot triage`: shows an agent its mail, its reviews and the next command.

use inspect::unjudged::{self, UnjudgedFile};
use mailbox::answers;
use mailbox::mailboxes::{AgentMailboxes, MailboxEntry};
use mailbox::my_reviews::{self, Move, MyReview};
use mailbox::said::Said;
use message_schema::Report;
use workspace::clock;
use workspace::index::LedgerIndex;

use super::answer::{CommandOutput, print};
use super::context::{Context, Me, quoted};
use super::failure::Failure;
use super::inbox;
use crate::exit::Exit;
use screen::Screen;
use views::home::{Home, RefusedMessage};
use views::inbox::Waiting;

/// The most messages named.
const NAMED: usize = 10;

/// Shows an agent its mail, its reviews and its next steps.
pub(super) fn run(context: &Context) -> Result<Exit, Failure> {
    let answer = gather(&context.me()?, context)?;
    let now = clock::now();
    context.say(&answer, |home| home.text(now, Screen::of_output()))?;
    Ok(Exit::Ok)
}

/// Prints the answer as JSON for programs; the exit code is 6 if the agent has something to do.
pub(super) fn triage(context: &Context) -> Result<Exit, Failure> {
    let answer = gather(&context.me()?, context)?;
    print(&answer.json())?;
    Ok(if answer.data.has_to_act() {
        Exit::ActionRequired
    } else {
        Exit::Ok
    })
}

/// The agent's mail and reviews, and the commands that it should run next, the most urgent first.
fn gather(me: &Me, context: &Context) -> Result<CommandOutput<Home>, Failure> {
    let home = read(me)?;
    let commands = commands(&home, me, context);
    let mut answer = CommandOutput::new(home);
    if answer.data.serving == Some(false) {
        answer.alert(
            "not_served",
            "no daemon serves this workspace: nothing is judged or delivered until one does",
        );
        match answer.data.unjudged {
            0 => {}
            1 => answer.alert("unjudged", "1 message in your outbox waits for it"),
            many => answer.alert(
                "unjudged",
                format!("{many} messages in your outbox wait for it"),
            ),
        }
    }
    for (command, why) in commands {
        answer.next(command, why);
    }
    if !answer.data.has_to_act() {
        answer.next(context.command("wait"), "until something comes");
    }
    Ok(answer)
}

fn read(me: &Me) -> Result<Home, Failure> {
    let Me { root, agent } = me;
    // An agent can always read its own files, but possibly not the ledger.
    let reviews = LedgerIndex::read(root)
        .ok()
        .map(|(index, _)| my_reviews::of(index.state(), agent));
    let inbox = inbox::waiting(me, NAMED)?;
    let (outbox, _) = unjudged::in_outbox(root, agent, NAMED);
    Ok(Home {
        agent: agent.to_string(),
        root: root.display().to_string(),
        serving: spool::is_served(root),
        unjudged: workspace::directory::waiting(root, agent).len(),
        outbox,
        refused: refused(me, &inbox),
        inbox,
        reviews,
    })
}

/// The commands for everything that the agent should act on.
fn commands(home: &Home, me: &Me, context: &Context) -> Vec<(String, &'static str)> {
    let files = match home.serving {
        Some(false) => unjudged_files(&home.outbox, me, context),
        Some(true) | None => Vec::new(),
    };
    let reviews = home.reviews.iter().flatten();
    let own = reviews.filter(|mine| mine.whose == Move::Yours);
    let refused = home.refused.last().map(|refused| {
        let command = if refused.file.starts_with('-') {
            context.command("dead-letter list")
        } else {
            context.command_on("dead-letter show", &refused.file, "")
        };
        (command, "why it was refused; correct it and send it again")
    });
    let ignored = home.outbox.iter().filter(|file| !file.is_read);
    files
        .into_iter()
        .chain(of_inbox(home, me, context))
        .chain(own.flat_map(|mine| moves(mine, me, context)))
        .chain(refused)
        .chain(ignored.map(|file| rename(file, me)))
        .collect()
}

/// The commands that show the first message that is news, and archive those that the agent has dealt with.
fn of_inbox(home: &Home, me: &Me, context: &Context) -> Vec<(String, &'static str)> {
    let mailboxes = AgentMailboxes::new(&me.root, &me.agent);
    let reviews = home.reviews.as_deref();
    let is_dealt_with = |message: &&MailboxEntry| {
        reviews.is_some_and(|reviews| answers::is_dealt_with(message, reviews, &mailboxes))
    };
    // The brief contains the request and the author's reports. While its reviewer has to answer them they are open.
    let is_in_brief = |message: &MailboxEntry| {
        let kind = message.kind.as_deref();
        reviews.is_some() && matches!(kind, Some("review_request" | "review_addressed"))
    };
    let (dealt, open): (Vec<_>, Vec<_>) = home.inbox.messages.iter().partition(is_dealt_with);
    let news = open.into_iter().find(|message| !is_in_brief(message));
    let show = news.map(|message| (context.command_on("show", &message.name(), ""), "read it"));
    let names: Vec<String> = dealt.iter().map(|message| message.name()).collect();
    let done = done(&names, context).into_iter();
    show.into_iter()
        .chain(done.map(|done| (done, "already answered")))
        .collect()
}

/// The refusals whose notices the agent has read. An unread notice is shown by itself.
fn refused(me: &Me, inbox: &Waiting) -> Vec<RefusedMessage> {
    let is_unread = |report: &Report| {
        let mut messages = inbox.messages.iter();
        messages.any(|message| answers::tells_of(message, report))
    };
    unjudged::refused(&me.root, &me.agent)
        .into_iter()
        .filter(|message| !is_unread(&message.report))
        .map(|message| RefusedMessage {
            code: message.report.refused.as_str(),
            summary: message.report.summary,
            file: message.file.unwrap_or(message.report_file),
        })
        .collect()
}

/// The next steps for messages in the agent's outbox that no daemon has judged; a daemon judges within seconds.
fn unjudged_files(
    outbox: &[UnjudgedFile],
    me: &Me,
    context: &Context,
) -> Vec<(String, &'static str)> {
    let (faulty, right): (Vec<_>, Vec<_>) = outbox
        .iter()
        .filter(|file| file.is_read)
        .partition(|file| !file.errors.is_empty());
    let validate = |file: &UnjudgedFile| {
        let path = me.root.join(&file.path);
        let command = format!("validate-message {}", quoted(path.as_os_str()));
        (command, "all its mistakes; correct them in place")
    };
    let serve = (
        context.command("serve --once"),
        "judges and delivers what waits",
    );
    let serve = (!right.is_empty()).then_some(serve);
    faulty.into_iter().map(validate).chain(serve).collect()
}

/// The next step for a file in the agent's outbox whose name makes the daemon skip it.
fn rename(file: &UnjudgedFile, me: &Me) -> (String, &'static str) {
    let [from, to] = [&file.path, &file.renamed()].map(|path| me.root.join(path));
    let (from, to) = (quoted(from.as_os_str()), quoted(to.as_os_str()));
    (
        format!("mv {from} {to}"),
        "once it is complete; then the daemon reads it",
    )
}

/// The command that an agent should run next.
pub(super) fn next(me: &Me, context: &Context) -> Result<Option<(String, String)>, Failure> {
    let mut answer = gather(me, context)?;
    let first = answer.next.drain(..).next();
    Ok(first.map(|next| (next.run, next.why.unwrap_or_default())))
}

/// The commands that archive messages: a single one unless a name begins with a hyphen.
pub(super) fn done(names: &[String], context: &Context) -> Vec<String> {
    if names.iter().any(|name| name.starts_with('-')) {
        let done = |name: &String| context.command_on("done", name, "");
        return names.iter().map(done).collect();
    }
    let words: Vec<_> = names.iter().map(|name| quoted(name.as_ref())).collect();
    let done = (!words.is_empty()).then(|| format!("done {}", words.join(" ")));
    done.map(|words| context.command(&words))
        .into_iter()
        .collect()
}

/// The commands that an agent should run next in a review, with this workspace and agent.
pub(super) fn moves(mine: &MyReview, me: &Me, context: &Context) -> Vec<(String, &'static str)> {
    let said = Said::read(&me.root, &me.agent, &mine.other, &mine.pr);
    let helps = mine.helps(&said).into_iter();
    let command = |(words, why): (String, _)| (context.command(&words), why);
    helps.map(command).collect()
}

#[cfg(test)]
mod tests {
    use message_schema::id::AgentName;

    use super::*;

    #[test]
    fn an_agent_without_mail_waits_for_some() {
        let home = tempfile::tempdir().expect("a directory");
        let root = home.path().join("room");
        let agent = AgentName::new("codex").expect("a name");
        workspace::directory::init(&root, std::slice::from_ref(&agent)).expect("a workspace");
        let context = Context::of(&root, "codex");
        let me = context.me().expect("an agent of the workspace");

        let next = next(&me, &context).expect("all of it can be read");
        let expected = (context.command("wait"), "until something comes".to_owned());
        assert_eq!(next, Some(expected));
    }

    #[test]
    fn one_command_puts_all_messages_away_unless_a_name_begins_like_an_option() {
        let context = Context::of("room".as_ref(), "codex");
        let done = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            super::done(&names, &context)
        };
        assert_eq!(done(&[]), Vec::<String>::new());
        assert_eq!(
            done(&["q-1", "q 2"]),
            ["settled done q-1 'q 2' --root room --agent codex"]
        );
        assert_eq!(
            done(&["q-1", "-x"]),
            [
                "settled done q-1 --root room --agent codex",
                "settled done --root room --agent codex -- -x"
            ]
        );
    }
}
