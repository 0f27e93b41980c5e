//! Posts a message and reports its outcome, for every command that writes as an agent. `unposted` says why one was not
//! written.

mod unposted;

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use mailbox::alerts;
use mailbox::answers;
use mailbox::compose::draft::{MessageDraft, PacketGiven};
use mailbox::compose::forecast::Forecast;
use mailbox::compose::lookout::{Lookout, MessageFate};
use mailbox::compose::message::CheckedMessage;
use mailbox::compose::outbox::file_name;
use mailbox::compose::packet::{MessagePacket, read};
use mailbox::compose::post::{Composed, PostedMessage, Posting, SentBefore};
use mailbox::compose::review_status::{ReviewStatus, ReviewStatuses};
use mailbox::compose::sent_before;
use mailbox::compose::words_from::WordsFrom;
use mailbox::mailboxes::{AgentMailboxes, MailboxEntry};
use mailbox::my_reviews::{Move, MyReview};
use mailbox::shown;
use message_schema::envelope::{MessageType, ReviewKind, TextKind};
use message_schema::id::{MessageId, PrNumber};
use message_schema::line::escaped;
use message_schema::{Code, Report};
use review::ToldAlert;
use validate_message::Violation;
use workspace::clock;

use super::answer::CommandOutput;
use super::context::{Context, Me};
use super::failure::Failure;
use super::home;
use super::posted::{Posted, told};
use crate::exit::Exit;

/// The time to wait for the notice of a refusal, to archive it.
const NOTICE_PATIENCE: Duration = Duration::from_millis(500);

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
    letter: &'a MessageDraft,
    way: &'a SendOptions,
    origin: WordsFrom<'a>,
    notes: Vec<(&'static str, String)>,
}

/// Sends the message and reports its outcome.
pub(super) fn post(
    context: &Context,
    me: &Me,
    letter: &MessageDraft,
    (way, origin): (&SendOptions, WordsFrom<'_>),
    notes: Vec<(&'static str, String)>,
    now: DateTime<Utc>,
) -> Result<Exit, Failure> {
    let id = way
        .id
        .clone()
        .unwrap_or_else(|| clock::new_id_of(&me.agent, now));
    let mut post = Outgoing {
        context,
        me,
        letter,
        way,
        origin,
        notes,
    };
    post.send(&id, now)
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
    let known = sent_before::find(&me.root, &me.agent, id)
        .ok()?
        .filter(|known| known.accepted)?;
    let message = message_schema::parse(known.text.as_bytes()).ok()?;
    let about = message.related_pr();
    let is_meant = pr.is_none_or(|pr| about.as_ref().is_some_and(|about| about.same_pr(pr)))
        && message.kind() == Some(kind);
    if !is_meant {
        return None;
    }
    let letter = MessageDraft {
        pr: about,
        ..MessageDraft::new(kind)
    };
    let note = "the round is over, so the command did not compare this with the accepted message"
        .to_owned();
    let post = Outgoing {
        context,
        me,
        letter: &letter,
        way,
        origin: WordsFrom::Flags,
        notes: vec![("not_compared", note)],
    };
    Some(post.accepted(Posted {
        again: true,
        ..Posted::new(id, "accepted", Some(&known.path))
    }))
}

impl Outgoing<'_> {
    fn send(&mut self, id: &MessageId, at: DateTime<Utc>) -> Result<Exit, Failure> {
        let Self {
            me, way, letter, ..
        } = *self;
        let posting = Posting {
            root: &me.root,
            agent: &me.agent,
            letter,
            id,
            at,
            is_id_given: way.id.is_some(),
        };
        // Opened before looking for a message of this id, so that the wait also sees what is judged in between.
        let lookout = Lookout::new(&me.root, &me.agent, id).map_err(|error| cannot_read(&error))?;
        if way.dry_run {
            return match posting.compose().map_err(|error| self.failed(id, &error))? {
                Composed::Ready(checked) => {
                    self.warn(checked.warnings());
                    self.notes.extend(checked.no_diff().map(no_diff));
                    self.dry(id, &checked, at)
                }
                Composed::SentBefore(before) => self.before(id, &before, &lookout),
            };
        }
        let (path, checked) = match posting.write().map_err(|error| self.failed(id, &error))? {
            PostedMessage::Written(path, checked) => (path, checked),
            PostedMessage::SentBefore(before) => return self.before(id, &before, &lookout),
        };
        self.warn(checked.warnings());
        self.notes.extend(checked.no_diff().map(no_diff));
        let mut posted = Posted::new(id, "written", Some(&path));
        if let MessagePacket::New(new) = checked.packet() {
            posted.packet = Some(new.path.to_string());
        }
        if way.no_wait {
            return self.say(posted, |posted| {
                format!("written, not judged yet: {}\n", posted.id)
            });
        }
        self.wait(&lookout, checked.text(), posted)
    }

    fn warn(&mut self, warnings: &[Violation]) {
        for warning in warnings {
            let note = (warning.code.as_str(), escaped(&warning.message));
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Reports the outcome of a message with this id that was sent before.
    fn before(
        &self,
        id: &MessageId,
        before: &SentBefore,
        lookout: &Lookout,
    ) -> Result<Exit, Failure> {
        let SentBefore { text, known } = before;
        if !sent_before::same(text, &known.text) {
            let message = format!(
                "you used the id {id} for another message, {}; nothing was written. Give this one an id of its own, or \
                 leave it out and one is made",
                escaped(&known.path.display().to_string())
            );
            let data = Posted {
                again: true,
                ..Posted::new(id, "invalid", Some(&known.path))
            };
            return Err(Failure::plain(Exit::Failed, message)
                .code(Code::IdCollision.as_str())
                .data(&data));
        }
        let posted = Posted {
            again: true,
            ..Posted::new(id, "accepted", Some(&known.path))
        };
        if known.accepted {
            return self.accepted(posted);
        }
        if self.way.no_wait || self.way.dry_run {
            return self.say(
                Posted {
                    outcome: "written",
                    ..posted
                },
                |posted| format!("written before, not judged yet: {}\n", posted.id),
            );
        }
        self.wait(lookout, &known.text, posted)
    }

    fn wait(&self, lookout: &Lookout, text: &str, posted: Posted) -> Result<Exit, Failure> {
        let patience = Duration::from_secs(self.way.timeout);
        let verdict = lookout
            .wait(text, patience)
            .map_err(|error| cannot_read(&error))?;
        match verdict {
            MessageFate::Accepted(path) => self.accepted(Posted {
                outcome: "accepted",
                file: Some(path.display().to_string()),
                ..posted
            }),
            MessageFate::Refused(path, report) => {
                let file = Some(path.display().to_string());
                self.refused(
                    text,
                    Posted {
                        outcome: "refused",
                        file,
                        ..posted
                    },
                    *report,
                )
            }
            MessageFate::Waiting(path) => Err(self.waiting(Posted {
                file: Some(path.display().to_string()),
                ..posted
            })),
        }
    }

    fn accepted(&self, posted: Posted) -> Result<Exit, Failure> {
        shown::forget(&self.me.root, &self.me.agent, self.letter);
        let review = self.standing(&posted);
        let done = self
            .settled()
            .into_iter()
            .map(|done| (done, "already answered"));
        let next = match self.my_review(review.as_ref()) {
            // Archive what is dealt with first, unless the review waits for this agent.
            Some(mine) if mine.whose == Move::Theirs && mine.role == "reviewer" => done.collect(),
            Some(mine) => home::moves(&mine, self.me, self.context)
                .into_iter()
                .chain(done)
                .collect(),
            None => {
                let next = self.next(&posted.id).into_iter();
                next.map(|next| (next, "returns when the answer comes"))
                    .chain(done)
                    .collect()
            }
        };
        // The record has what the daemon changed or limited, also when the message is sent again.
        let text = posted
            .file
            .as_ref()
            .and_then(|path| read(path.as_ref()).ok());
        let alerts = text.map_or_else(Vec::new, |text| alerts::about(&self.me.root, &text));
        self.say_with(Posted { review, ..posted }, next, alerts, |posted| {
            let before = if posted.again {
                "accepted before, nothing was sent"
            } else {
                "accepted"
            };
            let moved = posted.review.as_ref().map_or_else(String::new, |review| {
                format!("  {}\n{}", escaped(&review.told()), review.approval())
            });
            let moved = moved + &self.findings();
            format!("{before}: {}\n{moved}", posted.id)
        })
    }

    /// The findings of a packet that was written for the message, with the ids they were given.
    fn findings(&self) -> String {
        let is_feedback = self.letter.kind == MessageType::Review(ReviewKind::Feedback);
        let (PacketGiven::Text(text), true) = (&self.letter.packet, is_feedback) else {
            return String::new();
        };
        let Ok(packet) = message_schema::parse_packet(text.as_bytes()) else {
            return String::new();
        };
        let findings = packet.field("findings").map(|field| field.value.items());
        let line = |finding: &message_schema::yaml::Node| {
            let text = |key| finding.field_text(key).map(escaped).unwrap_or_default();
            let (id, severity, title) = (text("id"), text("severity"), text("title"));
            format!("  {id} {severity} {title}\n")
        };
        findings.unwrap_or_default().iter().map(line).collect()
    }

    /// The commands that archive the messages this one answers, if they are in the inbox or taken.
    fn settled(&self) -> Vec<String> {
        let MessageDraft {
            kind, pr, envelope, ..
        } = self.letter;
        let parent = envelope
            .get("parent_message_id")
            .and_then(serde_json::Value::as_str);
        let bag = AgentMailboxes::new(&self.me.root, &self.me.agent);
        // The message is accepted even if the inbox cannot be read.
        let letters = answers::answered(&bag, *kind, pr.as_ref(), parent).unwrap_or_default();
        let names: Vec<String> = letters.iter().map(MailboxEntry::name).collect();
        home::done(&names, self.context)
    }

    /// The review that the message moved, from the sender's side.
    fn my_review(&self, moved: Option<&ReviewStatus>) -> Option<MyReview> {
        let (moved, pr) = (moved?, self.letter.pr.as_ref()?);
        let mut mine = home::reviews_of(pr, self.me).into_iter();
        mine.find(|mine| mine.review == moved.review)
    }

    /// The status of the review that the message moved, if it moved one.
    fn standing(&self, posted: &Posted) -> Option<ReviewStatus> {
        if !self.letter.kind.is_review() {
            return None;
        }
        let id = MessageId::new(posted.id.as_str()).ok()?;
        ReviewStatuses::read(&self.me.root, &self.me.agent)?.of_message(&id)
    }

    fn refused(&self, text: &str, posted: Posted, report: Report) -> Result<Exit, Failure> {
        // If two identical messages were sent at the same time, the other one was accepted.
        if report.refused == Code::IdCollision
            && let Ok(id) = MessageId::new(posted.id.as_str())
            && let Ok(Some(known)) = sent_before::find(&self.me.root, &self.me.agent, &id)
            && known.accepted
            && sent_before::same(text, &known.text)
        {
            let file = Some(known.path.display().to_string());
            return self.accepted(Posted {
                outcome: "accepted",
                again: true,
                file,
                ..posted
            });
        }
        self.put_notice_away(&posted.id);
        let code = report.refused;
        let mut failure = Failure::plain(exit_of(code), told(self.context, &report, self.origin))
            .code(code.as_str());
        let mine = self
            .letter
            .pr
            .as_ref()
            .map(|pr| home::reviews_of(pr, self.me));
        // If a correction cannot help, suggest what may be sent instead.
        for mine in mine.into_iter().flatten().filter(|_| !report.retryable) {
            for (command, _) in home::moves(&mine, self.me, self.context) {
                failure = failure.or(command);
            }
        }
        if !report
            .violations
            .iter()
            .any(|violation| violation.fix.is_some())
        {
            failure = failure.or(self.context.command(&format!("explain {code}")));
        }
        let data = Posted {
            report: Some(report),
            ..posted
        };
        Err(failure.data(&data))
    }

    /// Archives the daemon's notice of a refusal that this command prints, because the sender has now read it. The
    /// notice arrives after the message is in `dead_letter/`, so this may take a moment.
    fn put_notice_away(&self, id: &str) {
        let bag = AgentMailboxes::new(&self.me.root, &self.me.agent);
        let start = Instant::now();
        while start.elapsed() < NOTICE_PATIENCE {
            match answers::refusal_notice(&bag, id) {
                Ok(Some(notice)) => {
                    // If another worker took the notice, that one deals with it.
                    let _ = bag.put_away(&notice);
                    return;
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Err(_) => return,
            }
        }
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
        failure.data(&Posted {
            outcome: "waiting",
            serving,
            ..posted
        })
    }

    /// Prints what would be written and what the daemon would decide; exits as sending would.
    fn dry(
        &self,
        id: &MessageId,
        checked: &CheckedMessage,
        at: DateTime<Utc>,
    ) -> Result<Exit, Failure> {
        let mut posted = Posted::new(id, "dry_run", None);
        let forecast = Forecast::of(&self.me.root, &self.me.agent, checked, at);
        let said = forecast.told();
        let refused = forecast.report.as_ref().map(|report| {
            let message = format!(
                "a dry run: nothing was written, and it uses no attempt. The daemon's decision would now be:\n{}",
                told(self.context, report, self.origin)
            );
            (exit_of(report.refused), report.refused, message)
        });
        posted.forecast = Some(forecast);
        posted.message_text = Some(checked.text().to_owned());
        if let MessagePacket::New(new) = checked.packet() {
            posted.packet = Some(new.path.to_string());
            posted.packet_text = Some(new.text.clone());
        }
        if let Some((exit, code, message)) = refused {
            let failure = Failure::plain(exit, message)
                .code(code.as_str())
                .data(&posted);
            return Err(failure.next(self.context.command(&format!("explain {code}"))));
        }
        let outbox = spool::dirs::of_agent(self.me.agent.as_str(), spool::dirs::OUTBOX);
        let outbox = format!("{outbox}/{}", file_name(id));
        self.say(posted, |posted| {
            let packet = posted.packet.iter().zip(&posted.packet_text);
            let mut files: String = packet
                .map(|(path, text)| format!("# {path}\n{text}"))
                .collect();
            files += &format!(
                "# {outbox}\n{}",
                posted.message_text.as_deref().unwrap_or_default()
            );
            files
                + &said
                    .iter()
                    .map(|line| format!("# {line}\n"))
                    .collect::<String>()
        })
    }

    /// The command that waits for an answer, if the message asks for one.
    fn next(&self, id: &str) -> Option<String> {
        let words = match self.letter.kind {
            MessageType::Review(ReviewKind::Request) => {
                format!("wait --for verdict --pr {}", self.letter.pr.as_ref()?)
            }
            MessageType::Text(
                TextKind::Question | TextKind::TaskRequest | TextKind::BrainstormRequest,
            ) => {
                let sign = if id.starts_with('-') { '=' } else { ' ' };
                format!("wait --for reply --id{sign}{id}")
            }
            MessageType::Review(
                ReviewKind::Feedback | ReviewKind::Addressed | ReviewKind::Lgtm,
            )
            | MessageType::Text(
                TextKind::Notification
                | TextKind::FollowUp
                | TextKind::Handoff
                | TextKind::HandoffComplete
                | TextKind::BrainstormFollowup,
            ) => return None,
        };
        Some(self.context.command(&words))
    }

    fn say(&self, posted: Posted, said: impl FnOnce(&Posted) -> String) -> Result<Exit, Failure> {
        self.say_with(posted, Vec::new(), Vec::new(), said)
    }

    fn say_with(
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

/// The exit code for a refused message.
fn exit_of(code: Code) -> Exit {
    if matches!(
        code,
        Code::QualityGateViolation | Code::ApprovalWithoutEvidence
    ) {
        Exit::GateRefused
    } else if code == Code::IdCollision {
        Exit::Failed
    } else {
        Exit::InvalidMessage
    }
}

/// The warning to an author whose request has no digest of its diff.
fn no_diff(why: &str) -> (&'static str, String) {
    (
        "no_diff_digest",
        format!("the request names no diff: {}", escaped(why)),
    )
}

fn cannot_read(error: &std::io::Error) -> Failure {
    Failure::plain(
        Exit::Temporary,
        format!("the mailboxes cannot be read: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_by_the_gate_or_of_the_message_or_of_its_id() {
        for (code, exit) in [
            (Code::QualityGateViolation, Exit::GateRefused),
            (Code::ApprovalWithoutEvidence, Exit::GateRefused),
            (Code::IdCollision, Exit::Failed),
            (Code::ActionMissing, Exit::InvalidMessage),
        ] {
            assert_eq!(exit_of(code), exit, "{code}");
        }
    }
}
