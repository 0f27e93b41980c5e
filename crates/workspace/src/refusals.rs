//! The newest refusals of each agent and what corrected them. Folded from the ledger like the state: the files in
//! `dead_letter/` belong to the agents, and a search of the ledger for what explains an old one, or one that the daemon
//! did not put there, would read a million records for every onlooker.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use message_schema::Code;
use message_schema::id::AgentName;
use review::{Judgement, Record, RefusedMessage};
use serde::{Deserialize, Serialize};
use spool::{Away, Content, Entry, FileName, Mailbox, Original};

/// The most refusals that are remembered of one agent. A corrected one makes room before an open one does.
pub const REFUSALS_MAX: usize = 32;

/// The refusals that are remembered, by the outbox they came from, oldest first.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Refusals(BTreeMap<String, Vec<Refusal>>);

/// A refusal as its record has it. Its report is left in `dead_letter/`: every reader of a snapshot would pay for the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The number of its record.
    pub seq: u64,
    /// The time of the refusal.
    pub at: DateTime<Utc>,
    /// The agent that sent the message.
    pub agent: AgentName,
    /// The name of the message in `dead_letter/`.
    pub file: FileName,
    /// The name it had in the outbox.
    original: FileName,
    /// The id of the message, where it could be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    id: Option<String>,
    /// The code of the refusal.
    pub code: Code,
    /// The review the daemon found it to belong to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub review: Option<String>,
    /// The name of the report in `dead_letter/`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub report_file: Option<FileName>,
    /// The correction, if one was accepted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub corrected: Option<Correction>,
}

/// The message that was accepted in place of a refused one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// The record that accepted it.
    pub by: u64,
    /// The link between both.
    pub same: Same,
}

/// The link between a correction and the refused message, beside the sender; the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Same {
    /// By the message's id.
    Id,
    /// By the file's name.
    File,
    /// By the review it belongs to.
    Review,
}

impl Same {
    /// Describes the accepted message.
    pub fn words(self) -> &'static str {
        match self {
            Self::Id => "the same id",
            Self::File => "a file of the same name",
            Self::Review => "a message to the same review",
        }
    }
}

impl Refusals {
    /// Takes in a record: a refusal is new, and an accepted message corrects those of its sender that it replaces.
    pub fn note(&mut self, entry: &Entry, record: &Record, at: DateTime<Utc>) {
        let Some(original) = &entry.original else {
            return;
        };
        match &original.away {
            Away::Sent(_) => {
                let refusals = self.0.get_mut(&original.outbox).into_iter().flatten();
                refusals.for_each(|refusal| refusal.correct(entry, original));
            }
            Away::DeadLetter(file) => {
                if let Record::Judged(Judgement::Refused(refused)) = record {
                    self.remember(
                        original.outbox.clone(),
                        Refusal::of(entry, original, file, refused, at),
                    );
                }
            }
        }
    }

    /// Remembers a refusal. A snapshot restores them in the order of [`Self::iter`].
    pub fn remember(&mut self, outbox: String, refusal: Refusal) {
        let refusals = self.0.entry(outbox).or_default();
        if refusals.len() == REFUSALS_MAX {
            let corrected = refusals.iter().position(|old| old.corrected.is_some());
            refusals.remove(corrected.unwrap_or(0));
        }
        refusals.push(refusal);
    }

    /// All refusals, each with the outbox it came from; those of one outbox oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Refusal)> {
        let all = self.0.iter();
        all.flat_map(|(outbox, refusals)| refusals.iter().map(move |it| (outbox.as_str(), it)))
    }
}

impl Refusal {
    fn of(
        entry: &Entry,
        original: &Original,
        file: &FileName,
        RefusedMessage { from, code, .. }: &RefusedMessage,
        at: DateTime<Utc>,
    ) -> Self {
        let (report_file, report) = report(entry).unzip();
        Self {
            seq: entry.seq,
            at,
            agent: from.clone(),
            file: file.clone(),
            original: original.file.clone(),
            id: entry.id.clone(),
            code: *code,
            review: report.and_then(review_of).map(str::to_owned),
            report_file: report_file.cloned(),
            corrected: None,
        }
    }

    /// Takes the accepted message of an entry as the correction, if it is one. A link by the id replaces a weaker one.
    fn correct(&mut self, entry: &Entry, original: &Original) {
        let is_same = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
        let same = if is_same(&self.id, &entry.id) {
            Same::Id
        } else if self.original == original.file {
            Same::File
        } else if is_same(&self.review, &entry.review) {
            Same::Review
        } else {
            return;
        };
        let known = self.corrected.map(|correction| correction.same);
        if known.is_none() || (known != Some(Same::Id) && same == Same::Id) {
            self.corrected = Some(Correction {
                by: entry.seq,
                same,
            });
        }
    }
}

/// The report that a record puts beside its refused original: its name and its text.
pub fn report(entry: &Entry) -> Option<(&FileName, &str)> {
    entry
        .deliveries
        .iter()
        .find_map(|delivery| match (&delivery.mailbox, &delivery.content) {
            (Mailbox::DeadLetter(_), Content::Text(text)) => Some((&delivery.file, text.as_str())),
            (
                Mailbox::DeadLetter(_)
                | Mailbox::Inbox(_)
                | Mailbox::Packets(_)
                | Mailbox::PullRequest(_),
                Content::Original | Content::Text(_) | Content::Withdrawn(_),
            ) => None,
        })
}

/// The review that a report names. The daemon folds every refusal, and reading a report as YAML costs as much as
/// judging a message; only keys begin a line of what `Report::to_yaml` writes, and the name of a review needs no
/// escapes.
fn review_of(report: &str) -> Option<&str> {
    let value = report
        .lines()
        .find_map(|line| line.strip_prefix("review: "))?;
    Some(value.trim_matches(['"', '\'']))
}

#[cfg(test)]
mod tests {
    use message_schema::Report;
    use message_schema::envelope::Timestamp;
    use message_schema::id::MessageId;
    use review::Notice;
    use spool::{Delivery, Digest};

    use super::*;

    const AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn name(text: &str) -> FileName {
        text.parse().expect("a file name")
    }

    /// A record about a message that codex wrote.
    fn entry(seq: u64, file: &str, id: &str, review: Option<&str>, away: Away) -> Entry {
        Entry {
            seq,
            prev: Digest::ZERO,
            batch: seq,
            host: None,
            at: "1970-01-01T00:00:00.000Z".to_owned(),
            kind: "judged".to_owned(),
            rules: None,
            review: review.map(str::to_owned),
            id: Some(id.to_owned()),
            original: Some(Original {
                outbox: "codex".to_owned(),
                file: name(file),
                digest: None,
                stamp: None,
                away,
                text: None,
            }),
            deliveries: Vec::new(),
            decision: serde_json::value::to_raw_value(&()).expect("JSON"),
        }
    }

    fn refused() -> Record {
        Record::Judged(Judgement::Refused(RefusedMessage {
            from: "codex".parse().expect("a name"),
            code: Code::YamlSyntax,
            cost: None,
            notice: Notice::Withheld,
        }))
    }

    /// Has codex refused once more; its report names the review.
    fn refuse(refusals: &mut Refusals, seq: u64, file: &str) {
        let mut entry = entry(seq, file, file, None, Away::DeadLetter(name(file)));
        entry.deliveries = vec![Delivery {
            mailbox: Mailbox::DeadLetter("codex".to_owned()),
            file: name("its.report.yaml"),
            content: Content::Text("file: a\nreview: \"#86 claude -> codex\"\n".to_owned()),
        }];
        refusals.note(&entry, &refused(), AT);
    }

    fn accept(refusals: &mut Refusals, seq: u64, file: &str, id: &str, review: Option<&str>) {
        let entry = entry(seq, file, id, review, Away::Sent(name(file)));
        let accepted = Record::Judged(Judgement::Duplicate(review::Duplicate {
            from: "codex".parse().expect("a name"),
            id: MessageId::new(id).expect("an id"),
        }));
        refusals.note(&entry, &accepted, AT);
    }

    fn fates(refusals: &Refusals) -> Vec<(u64, Option<(u64, Same)>)> {
        let fate = |it: Correction| (it.by, it.same);
        let all = refusals.iter();
        all.map(|(_, refusal)| (refusal.seq, refusal.corrected.map(fate)))
            .collect()
    }

    #[test]
    fn a_message_corrects_what_has_its_id_its_file_or_its_review() {
        let mut refusals = Refusals::default();
        refuse(&mut refusals, 1, "a.yaml");
        accept(&mut refusals, 2, "b.yaml", "b", Some("#87 claude -> codex"));
        assert_eq!(fates(&refusals), [(1, None)]);
        accept(&mut refusals, 3, "b.yaml", "b", Some("#86 claude -> codex"));
        assert_eq!(fates(&refusals), [(1, Some((3, Same::Review)))]);
        refuse(&mut refusals, 4, "c.yaml");
        accept(&mut refusals, 5, "c.yaml", "b", None);
        let corrected = [(1, Some((3, Same::Review))), (4, Some((5, Same::File)))];
        assert_eq!(fates(&refusals), corrected);
        // The id is the surest link, and the first message that has it is the correction.
        accept(&mut refusals, 6, "c.yaml", "a.yaml", None);
        accept(&mut refusals, 7, "a.yaml", "a.yaml", None);
        let corrected = [(1, Some((6, Same::Id))), (4, Some((5, Same::File)))];
        assert_eq!(fates(&refusals), corrected);
    }

    #[test]
    fn a_corrected_refusal_makes_room_first_and_then_the_oldest() {
        let mut refusals = Refusals::default();
        let all = REFUSALS_MAX as u64;
        (1..=all).for_each(|seq| refuse(&mut refusals, seq, &format!("{seq}.yaml")));
        accept(&mut refusals, all + 1, "5.yaml", "again", None);
        let seqs = |refusals: &Refusals| -> Vec<u64> {
            refusals.iter().map(|(_, refusal)| refusal.seq).collect()
        };
        refuse(&mut refusals, all + 2, "new.yaml");
        let without_5: Vec<u64> = (1..=all + 2)
            .filter(|seq| ![5, all + 1].contains(seq))
            .collect();
        assert_eq!(seqs(&refusals), without_5);
        refuse(&mut refusals, all + 3, "newer.yaml");
        assert_eq!(seqs(&refusals)[..2], [2, 3]);
        assert_eq!(seqs(&refusals).len(), REFUSALS_MAX);
    }

    #[test]
    fn the_review_is_that_of_the_report() {
        let report = Report {
            schema_version: 1,
            file: "a.yaml".to_owned(),
            digest: "sha256:00".to_owned(),
            message_id: None,
            from_outbox: "codex".parse().expect("a name"),
            received_at: Timestamp::parse("2026-02-13T10:00:00Z").expect("a time"),
            refused: Code::YamlSyntax,
            summary: "two lines,\nreview: \"#1 not -> this\"".to_owned(),
            retryable: true,
            violations: Vec::new(),
            review: Some("acme/shop#86 claude -> codex".to_owned()),
            round: None,
            legal_next: Vec::new(),
            attempts_left: None,
            next_command: None,
        };
        assert_eq!(review_of(&report.to_yaml()), report.review.as_deref());
        assert_eq!(review_of("file: a.yaml\n"), None);
    }
}
