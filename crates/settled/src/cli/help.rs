//! Shortens `--help` for commands whose options fill more than a screen: shows all commands in groups, and the options
//! of `send` and `reply` by message type.

use clap::{Arg, Command};
use message_schema::Schema;
use message_schema::envelope::{MessageType, ReviewKind};
use serde_json::Value;

use super::{bodies, send};

/// All commands on one screen.
pub(super) const OVERVIEW: &str = "\
Settled checks the review messages that agents write, delivers each one once,
and ends every review: approved, closed, or escalated to a person.

Usage: settled [--root DIR] [--agent NAME] [--json] [COMMAND]
Agents:
  next      what to do now (the default)  send      send a message: TYPE --help
  inbox     your mail, urgent first       reply     reply to a message
  show      a message with its packet     brief     what a request asks of you
  take      take a message to work on     feedback  answer it with findings
  done      archive messages              lgtm      answer it with an approval
  wait      wait for mail or your move    threads   findings, their discussion
  status    all reviews, who moves next   why       what one review waits for
  pr        report a merge or a close     gate      check a commit's approval
People:     review (approve, cancel, reopen, grant)
            thread (resolve, wont-fix, hold, release, queue, drop)
Operators:  up, init, agent, serve, service, watch, page, notify, problems,
            doctor, log, trace, dead-letter, gc, ledger, host
CI, tools:  diff, validate-run, verdict, turn, pair, hook, mcp, agents-md,
            robot, completions, man
Learn:      demo, explain, states, simulate, help COMMAND
Examples:   settled up ./mailroom --agents claude,codex
Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 timed out, 5 not permitted,
            6 action required, 7 refused, 8 not approved, 9 try again
";

/// The kind of message that a command line is about.
enum About {
    /// `settled send TYPE`.
    Type(MessageType),
    /// `settled send` without a type.
    NoType,
    /// `settled reply`.
    Reply,
}

/// Hides the options that the caller of `--help` does not need.
pub(super) fn tailored(command: Command, words: &[String]) -> Command {
    let is_global = |word: &&String| word.as_str() == "--root" || word.as_str() == "--agent";
    let mut plain = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if is_global(&word) {
            words.next();
        } else if !word.starts_with('-') && (word != "help" || !plain.is_empty()) {
            plain.push(word.as_str());
        }
    }
    match plain.as_slice() {
        ["send", rest @ ..] => {
            let kind = rest.first().and_then(|word| send::kind(word).ok());
            of_message(command, "send", &kind.map_or(About::NoType, About::Type))
        }
        ["reply", ..] => of_message(command, "reply", &About::Reply),
        _ => command,
    }
}

fn of_message(command: Command, name: &str, about: &About) -> Command {
    command.mut_subcommand(name, |command| {
        let after = command.get_after_help().map(ToString::to_string);
        let command = command.mut_args(|arg| {
            let is_shown = is_shown(&arg, about);
            arg.hide(!is_shown)
        });
        match (about, after) {
            (About::Type(kind), Some(after)) => command
                .about(send::sentence(*kind))
                .override_usage(format!("settled send {kind} [OPTIONS]"))
                .after_help(examples_of(&after, *kind)),
            (About::NoType, _) => command
                .override_usage("settled send TYPE [OPTIONS]")
                .before_help(types()),
            (About::Reply, _) | (_, None) => command,
        }
    })
}

/// Every type with its purpose.
fn types() -> String {
    let line = |kind: MessageType| format!("\n  {:<20} {}", kind.as_str(), send::sentence(kind));
    let lines: String = MessageType::all().map(line).collect();
    format!("Types (`settled send TYPE --help` shows all options of a type):{lines}")
}

/// True if the help shows this option, which depends on its heading.
fn is_shown(arg: &Arg, about: &About) -> bool {
    let id = arg.get_id().as_str();
    let common = [
        "to",
        "pr",
        "body_file",
        "body",
        "subject",
        "timeout",
        "dry_run",
        "kind",
    ];
    let heading = arg.get_help_heading();
    match about {
        About::NoType => id != "kind" && (heading.is_none() || common.contains(&id)),
        About::Reply => {
            heading.is_none() || heading == Some(bodies::ADDRESSED) || common.contains(&id)
        }
        About::Type(kind) => match heading {
            Some(bodies::CARRIED) => !kind.is_review(),
            Some(bodies::COST) => kind.may_carry_telemetry(),
            Some(bodies::REQUEST | bodies::ADDRESSED | bodies::RESPONSE) => is_field(id, *kind),
            Some(_) | None => id != "kind",
        },
    }
}

/// True if a body of this type has this field.
fn is_field(id: &str, kind: MessageType) -> bool {
    if id == "repo_dir" {
        return kind == MessageType::Review(ReviewKind::Request);
    }
    Schema::of_body(kind).is_some_and(|schema| {
        let schema: Value = serde_json::from_str(schema.source()).expect("a schema is JSON");
        schema["properties"].get(id).is_some()
    })
}

/// The examples for this type, and the text after the examples.
fn examples_of(after: &str, kind: MessageType) -> String {
    let own = |line: &&str| !line.starts_with("  settled") || line.contains(&format!(" {kind} "));
    let kept: Vec<&str> = after.lines().filter(own).collect();
    let kept = kept.join("\n");
    match kept.strip_prefix("Examples:\n\n") {
        Some(rest) => {
            format!("Examples:\n  settled send {kind} --to codex --body \"...\"\n\n{rest}")
        }
        None => kept,
    }
}
