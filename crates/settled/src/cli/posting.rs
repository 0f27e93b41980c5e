//! Posts a message and reports its outcome, for every command that writes as an agent. `unposted` says why one was not
//! written.

mod unposted;

use std::time::Duration;

use chrono::{DateTime, Utc};
use mailbox::compose::draft::MessageDraft;
use mailbox::compose::forecast::Forecast;
use mailbox::compose::lookout::MessageFate;
use mailbox::compose::message::CheckedMessage;
use mailbox::compose::packet::MessagePacket;
use mailbox::compose::post::{Composed, Posting};
use mailbox::compose::review_status::ReviewStatuses;
use mailbox::compose::send::SendOutcome;
use mailbox::compose::sent_before;
use mailbox::compose::words_from::WordsFrom;
use mailbox::mailboxes::file_name;
use mailbox::mailboxes::{AgentMailboxes, MailboxEntry};
use mailbox::my_reviews::{self, Move, MyReview};
use mailbox::{alerts, answers};
use message_schema::envelope::MessageType;
use message_schema::id::{MessageId, PrNumber};
use message_schema::line::escaped;
use message_schema::{Code, Report};
use review::ToldAlert;
use views::posted::{Posted, exit_of, refusal_text};
use workspace::clock;

use super::answer::CommandOutput;
use super::context::{Context, Me};
use super::failure::Failure;
use super::home;
use crate::exit::Exit;

/// Options for sending a message.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "How it is sent")]
pub(super) struct SendOptions {
    /// The message id; if you already sent this id, the command prints its outcome and writes nothing
    #[arg(long, value_name = "ID")]
    id: Option<MessageId>,
    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not wait for the daemon's verdict
    #[arg(long, conflicts_with = "dry_run")]
    no_wait: bool,
    /// How long to wait for the daemon's verdict
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    timeout: u64,
}

/// A message that is being sent.
struct Outgoing<'a> {
    context: &'a Context,
    me: &'a Me,
    draft: &'a MessageDraft,
    id: &'a MessageId,
    way: &'a SendOptions,
    origin: WordsFrom<'a>,
    notes: Vec<(&'static str, String)>,
}

/// Sends the message and reports its outcome.
pub(super) fn post(
    context: &Context,
    me: &Me,
    draft: &MessageDraft,
    (way, origin): (&SendOptions, WordsFrom<'_>),
    notes: Vec<(&'static str, String)>,
    at: DateTime<Utc>,
) -> Result<Exit, Failure> {
    let new = || clock::new_id_of(&me.agent, at);
    let id = &way.id.clone().unwrap_or_else(new);
    let out = Outgoing {
        context,
        me,
        draft,
        id,
        way,
        origin,
        notes,
    };
    let posting = Posting {
        root: &me.root,
        agent: &me.agent,
        draft,
        id,
        at,
        is_id_given: way.id.is_some(),
    };
    let patience = Duration::from_secs(way.timeout);
    let sent = if way.dry_run {
        match posting.compose() {
            Ok(Composed::Ready(checked)) => return out.dry(&checked, at),
            Ok(Composed::SentBefore(before)) => posting.again(before, None),
            Err(error) => Err(error),
        }
    } else {
        posting.send((!way.no_wait).then_some(patience))
    };
    match sent {
        Ok(outcome) => out.sent(outcome),
        Err(error) => Err(out.failed(&error)),
    }
}

/// Reports the message of this type and id as accepted before, for a command that finds no open request. None if no
/// such message was accepted.
pub(super) fn sent_before(
    context: &Context,
    me: &Me,
    kind: MessageType,
    pr: Option<&PrNumber>,
    way: &SendOptions,
) -> Option<Result<Exit, Failure>> {
    let id = way.id.as_ref()?;
    let (path, about) = sent_before::accepted((&me.root, &me.agent), id, kind, pr)?;
    let draft = MessageDraft {
        pr: about,
        ..MessageDraft::new(kind)
    };
    let note = "the round is over, so the command did not compare this with the accepted message"
        .to_owned();
    let out = Outgoing {
        context,
        me,
        draft: &draft,
        id,
        way,
        origin: WordsFrom::Flags,
        notes: vec![("not_compared", note)],
    };
    Some(out.accepted(Posted {
        again: true,
        ..Posted::new(id, "accepted", Some(&path))
    }))
}

impl Outgoing<'_> {
    fn sent(mut self, outcome: SendOutcome) -> Result<Exit, Failure> {
        let SendOutcome {
            fate,
            again,
            written,
        } = outcome;
        let mut packet = None;
        if let Some(checked) = &written {
            self.note(checked);
            if let MessagePacket::New(new) = checked.packet() {
                packet = Some(new.path.to_string());
            }
        }
        let (outcome, path) = match &fate {
            MessageFate::Accepted(path) => ("accepted", path),
            MessageFate::Refused(path, _) => ("refused", path),
            MessageFate::Waiting(path) if self.way.no_wait || self.way.dry_run => ("written", path),
            MessageFate::Waiting(path) => ("waiting", path),
            MessageFate::IdUsed(path) => ("invalid", path),
        };
        let posted = Posted {
            again,
            packet,
            ..Posted::new(self.id, outcome, Some(path))
        };
        match fate {
            MessageFate::Accepted(_) => self.accepted(posted),
            MessageFate::Refused(_, report) => Err(self.refused(posted, *report)),
            MessageFate::Waiting(_) if outcome == "written" => {
                let written = if again { "written before" } else { "written" };
                self.say(posted, Vec::new(), Vec::new(), |posted| {
                    format!("{written}, not judged yet: {}\n", posted.id)
                })
            }
            MessageFate::Waiting(_) => Err(self.waiting(posted)),
            MessageFate::IdUsed(path) => {
                let message = format!(
                    "you used the id {} for another message, {}; nothing was written. Give this one an id of its own, or \
                     leave it out and one is made",
                    self.id,
                    escaped(&path.display().to_string())
                );
                Err(Failure::plain(Exit::Failed, message)
                    .code(Code::IdCollision.as_str())
                    .data(&posted))
            }
        }
    }

    /// Adds the warnings of the validator, and the warning to an author whose request has no digest of its diff.
    fn note(&mut self, checked: &CheckedMessage) {
        let warnings = checked.warnings().iter();
        let warnings = warnings.map(|warning| (warning.code.as_str(), escaped(&warning.message)));
        let no_diff = |why| format!("the request names no diff: {}", escaped(why));
        let no_diff = checked.no_diff().map(no_diff);
        for note in warnings.chain(no_diff.map(|why| ("no_diff_digest", why))) {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    fn accepted(&self, posted: Posted) -> Result<Exit, Failure> {
        let Me { root, agent } = self.me;
        let (kind, pr) = (self.draft.kind, self.draft.pr.as_ref());
        let statuses = kind.is_review().then(|| ReviewStatuses::read(root, agent));
        let review = statuses.flatten().and_then(|all| all.of_message(self.id));
        let mine = pr.zip(review.as_ref()).and_then(|(pr, moved)| {
            let mut mine = my_reviews::read(root, pr, agent).into_iter();
            mine.find(|mine| mine.review == moved.review)
        });
        let mut next = match &mine {
            // Archive what is dealt with first, unless the review waits for this agent.
            Some(mine) if mine.whose == Move::Theirs && mine.role == "reviewer" => Vec::new(),
            Some(mine) => home::moves(mine, self.me, self.context),
            None => answers::wait_for(kind, pr, &posted.id)
                .map(|words| {
                    (
                        self.context.command(&words),
                        "returns when the answer comes",
                    )
                })
                .into_iter()
                .collect(),
        };
        // The message is accepted even if the inbox cannot be read.
        let parent = self.draft.envelope.get("parent_message_id");
        let parent = parent.and_then(serde_json::Value::as_str);
        let mailboxes = AgentMailboxes::new(root, agent);
        let answered = answers::answered(&mailboxes, kind, pr, parent).unwrap_or_default();
        let names: Vec<String> = answered.iter().map(MailboxEntry::name).collect();
        let done = home::done(&names, self.context).into_iter();
        next.extend(done.map(|done| (done, "already answered")));
        // The record has what the daemon changed or limited, also when the message is sent again.
        let file = posted.file.as_ref();
        let alerts = file.map_or_else(Vec::new, |path| alerts::about_file(root, path.as_ref()));
        self.say(Posted { review, ..posted }, next, alerts, |posted| {
            posted.accepted(self.draft)
        })
    }

    fn refused(&self, posted: Posted, report: Report) -> Failure {
        let code = report.refused;
        let mut failure = Failure::plain(exit_of(code), self.refusal(&report)).code(code.as_str());
        // If a correction cannot help, suggest what may be sent instead.
        if let Some(pr) = self.draft.pr.as_ref().filter(|_| !report.retryable) {
            let mine = my_reviews::read(&self.me.root, pr, &self.me.agent);
            failure = self.moves(&mine, failure);
        }
        if report
            .violations
            .iter()
            .all(|violation| violation.fix.is_none())
        {
            failure = failure.or(self.context.command(&format!("explain {code}")));
        }
        failure.data(&Posted {
            report: Some(report),
            ..posted
        })
    }

    fn refusal(&self, report: &Report) -> String {
        let flags = flags(&(self.context.command_line)(), self.origin);
        refusal_text(report, self.origin, &flags)
    }

    /// Suggests what this agent may send in these reviews.
    fn moves(&self, reviews: &[MyReview], failure: Failure) -> Failure {
        let moves = reviews
            .iter()
            .flat_map(|mine| home::moves(mine, self.me, self.context));
        moves.fold(failure, |failure, (command, _)| failure.or(command))
    }

    fn waiting(&self, posted: Posted) -> Failure {
        let serving = spool::is_served(&self.me.root);
        let daemon = match serving {
            Some(true) => "a daemon serves and has not judged it yet",
            Some(false) => "no daemon serves",
            None => "this user cannot see whether a daemon serves",
        };
        let message = format!(
            "not judged within {} s; {daemon}. It is written and safe: do not send it again",
            self.way.timeout
        );
        let next = self.context.command_on("trace", &posted.id, "");
        let failure = Failure::plain(Exit::Temporary, message).next(next);
        failure.data(&Posted { serving, ..posted })
    }

    /// Prints what would be written and what the daemon would decide; exits as sending would.
    fn dry(mut self, checked: &CheckedMessage, at: DateTime<Utc>) -> Result<Exit, Failure> {
        self.note(checked);
        let Me { root, agent } = self.me;
        let mut posted = Posted::new(self.id, "dry_run", None);
        posted.message_text = Some(checked.text().to_owned());
        if let MessagePacket::New(new) = checked.packet() {
            posted.packet = Some(new.path.to_string());
            posted.packet_text = Some(new.text.clone());
        }
        let forecast = Forecast::of(root, agent, checked, at);
        let refused = forecast.report.clone();
        posted.forecast = Some(forecast);
        if let Some(report) = refused {
            let code = report.refused;
            let message = format!(
                "a dry run: nothing was written, and it uses no attempt. The daemon's decision would now be:\n{}",
                self.refusal(&report)
            );
            return Err(Failure::plain(exit_of(code), message)
                .code(code.as_str())
                .data(&posted)
                .next(self.context.command(&format!("explain {code}"))));
        }
        let outbox = spool::dirs::of_agent(agent.as_str(), spool::dirs::OUTBOX);
        let path = format!("{outbox}/{}", file_name(self.id));
        self.say(posted, Vec::new(), Vec::new(), |posted| posted.dry(&path))
    }

    fn say(
        &self,
        posted: Posted,
        next: Vec<(String, &'static str)>,
        alerts: Vec<ToldAlert>,
        said: impl FnOnce(&Posted) -> String,
    ) -> Result<Exit, Failure> {
        let mut answer = CommandOutput::new(posted);
        for (command, why) in next {
            answer.next(command, why);
        }
        // Leave out warnings that the record now repeats.
        let foreseen = |code: &str| !alerts.iter().any(|alert| alert.code == code);
        for (code, note) in self.notes.iter().filter(|(code, _)| foreseen(code)) {
            answer.alert(*code, note.as_str());
        }
        for alert in alerts {
            answer.alert(alert.code, alert.message);
        }
        self.context.say(&answer, said)?;
        Ok(Exit::Ok)
    }
}

/// The options of the command that was run, each after the field that it sets.
fn flags(command_line: &clap::Command, origin: WordsFrom<'_>) -> Vec<(String, String)> {
    let name = match origin {
        WordsFrom::Flags | WordsFrom::Yaml(_) | WordsFrom::Packet(_) => "send",
        WordsFrom::Response | WordsFrom::Findings { .. } => "feedback",
    };
    let sent = command_line.find_subcommand(name).into_iter();
    let options = sent.flat_map(clap::Command::get_arguments);
    options
        .filter_map(|option| {
            let field = match option.get_id().as_str() {
                "head" => "validated_head",
                field => field,
            };
            Some((field.to_owned(), format!("--{}", option.get_long()?)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::SettledCli;
    use super::*;

    #[test]
    fn a_field_is_called_by_the_flag_of_the_command_that_was_run() {
        let named = |origin, flag: &str| {
            let pair = ("validated_head".to_owned(), flag.to_owned());
            flags(&SettledCli::command(), origin).contains(&pair)
        };
        assert!(named(WordsFrom::Flags, "--validated-head"));
        assert!(named(WordsFrom::Response, "--head"));
    }
}
