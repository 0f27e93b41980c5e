//! The reviews of a case: an author asks, a reviewer answers with findings whose packet comes before, after or never,
//! the author fixes them and asks again, and the reviewer approves. Each message is written after the previous one was
//! accepted.

use settled_tests::seed;

use super::case::{FLOODED_MS, Hands};
use super::model::{Verdict, Version};

/// A packet at most this many milliseconds after its message is certainly in time: it has to be unchanged for half a
/// second, and the message waits five.
const IN_TIME_MS: u64 = 4_000;

/// The time that a message waits for its packet, in milliseconds.
const PATIENCE_MS: u64 = 5_000;

/// The time after its request in which a review cannot reach a deadline, in milliseconds.
const CALM_MS: u64 = 20 * 3_600_000;

/// The last message written in a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Asked,
    Found,
    Addressed,
    AskedAgain,
}

#[derive(Clone, Debug)]
struct Play {
    pr: u64,
    author: &'static str,
    reviewer: &'static str,
    stage: Stage,
    /// The item written last, and the time at which the review was opened.
    item: usize,
    opened_at: u64,
}

/// A packet that arrives after its message.
#[derive(Clone, Debug)]
struct Late {
    item: usize,
    written_at: u64,
    file: String,
    text: String,
}

/// All reviews of a case.
#[derive(Debug, Default)]
pub(super) struct Reviews {
    plays: Vec<Play>,
    late: Vec<Late>,
    opened: u64,
}

impl Reviews {
    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    /// Opens a review, continues one, or writes a late packet.
    pub(super) fn step(&mut self, hands: &mut Hands<'_>) {
        let roll = hands.dice.roll(10);
        if roll < 3 && !self.late.is_empty() {
            self.lay_late(hands);
        } else if roll < 6 || self.plays.is_empty() {
            self.ask(hands);
        } else {
            self.go_on(hands);
        }
    }

    fn ask(&mut self, hands: &mut Hands<'_>) {
        let (author, reviewer) = hands.two_agents();
        let pr = hands.next_number();
        let body = format!(
            "pr: {pr}\nbranch: change-{pr}\ndiff_summary: a change\nmax_turns_reviewer: 1000\nmax_runtime_s_reviewer: 86400"
        );
        let item = write(hands, "review_request", author, reviewer, pr, &body, None);
        self.opened += 1;
        let opened_at = hands.now();
        self.plays.push(Play {
            pr,
            author,
            reviewer,
            stage: Stage::Asked,
            item,
            opened_at,
        });
    }

    fn go_on(&mut self, hands: &mut Hands<'_>) {
        let at = hands.dice.below(self.plays.len());
        let play = self.plays[at].clone();
        let last = &hands.items[play.item];
        if !hands.served.ledger.has_accepted(last.agent, &last.file)
            || hands.now() > play.opened_at + CALM_MS
        {
            return;
        }
        let pr = play.pr;
        let (author, reviewer) = (play.author, play.reviewer);
        let next = match play.stage {
            Stage::Asked if hands.dice.roll(3) == 0 => {
                let body = format!("pr: {pr}\nquality_gate_result: pass\nmerge_ready: true");
                write(hands, "review_lgtm", reviewer, author, pr, &body, None);
                None
            }
            Stage::Asked => Some((Stage::Found, self.find(hands, &play))),
            Stage::Found => {
                let body = format!("commit_sha: \"{pr:07x}\"\nchanges_summary: mended\nround: 1");
                let item = write(hands, "review_addressed", author, reviewer, pr, &body, None);
                Some((Stage::Addressed, item))
            }
            Stage::Addressed => {
                let body = format!("pr: {pr}\nbranch: change-{pr}\ndiff_summary: mended");
                let item = write(hands, "review_request", author, reviewer, pr, &body, None);
                Some((Stage::AskedAgain, item))
            }
            Stage::AskedAgain => {
                let body =
                    format!("pr: {pr}\nquality_gate_result: pass\nmerge_ready: true\nround: 2");
                let item = write(hands, "review_lgtm", reviewer, author, pr, &body, None);
                // The rules of reviews, not of mail, decide whether it passes the gate.
                set(hands, item, Verdict::Any);
                None
            }
        };
        match next {
            Some((stage, item)) => (self.plays[at].stage, self.plays[at].item) = (stage, item),
            None => drop(self.plays.swap_remove(at)),
        }
    }

    /// Posts a feedback whose packet is already there, comes late, or never.
    fn find(&mut self, hands: &mut Hands<'_>, play: &Play) -> usize {
        let Play {
            pr,
            author,
            reviewer,
            ..
        } = *play;
        let file = format!("packet-{}.yaml", hands.next_number());
        let text = format!(
            "findings:\n- {{id: F-1, severity: P1, status: open, title: \"part of change {pr} breaks\", file: src/part.rs, line: 1}}\n"
        );
        let body = format!("findings_packet: packets/findings/{file}\nround: 1\nblocking_count: 1");
        let way = hands.dice.roll(4);
        let comes_first = way == 0;
        if comes_first {
            hands.lay_packet(&file, &text);
        }
        let written_at = hands.now();
        let packet = Some(text.clone());
        let item = write(
            hands,
            "review_feedback",
            reviewer,
            author,
            pr,
            &body,
            packet,
        );
        if comes_first {
            return item;
        }
        // It is refused unless its packet arrives, and not before its patience is over.
        if hands.items[item].last().verdict == Verdict::Good {
            set(hands, item, Verdict::Bad);
            let last = hands.items[item].versions.last_mut().expect("it has one");
            last.from = written_at + PATIENCE_MS;
        }
        match way {
            1 => {}
            2 => {
                let pause = hands.dice.roll(IN_TIME_MS - 1_000);
                hands.work(pause);
                self.late.push(Late {
                    item,
                    written_at,
                    file,
                    text,
                });
                self.lay_late(hands);
            }
            _ => self.late.push(Late {
                item,
                written_at,
                file,
                text,
            }),
        }
        item
    }

    fn lay_late(&mut self, hands: &mut Hands<'_>) {
        let late = self.late.pop().expect("the caller looked");
        hands.lay_packet(&late.file, &late.text);
        let passed = hands.now() - late.written_at;
        if hands.items[late.item].last().verdict == Verdict::Bad {
            let verdict = if passed <= IN_TIME_MS {
                Verdict::Good
            } else {
                Verdict::Any
            };
            set(hands, late.item, verdict);
            let last = hands.items[late.item]
                .versions
                .last_mut()
                .expect("it has one");
            last.from = late.written_at;
        }
    }
}

fn set(hands: &mut Hands<'_>, item: usize, verdict: Verdict) {
    hands.items[item]
        .versions
        .last_mut()
        .expect("it has one")
        .verdict = verdict;
}

/// Writes a message of a review. If its sender floods its own outbox, any outcome is allowed.
fn write(
    hands: &mut Hands<'_>,
    kind: &str,
    from: &'static str,
    to: &'static str,
    pr: u64,
    body: &str,
    packet: Option<String>,
) -> usize {
    let id = format!("review-{}", hands.next_number());
    let text = seed::review_message(kind, &id, from, to, &pr.to_string(), body);
    let is_flooded = hands
        .flooded
        .get(from)
        .is_some_and(|at| hands.now() < at + FLOODED_MS);
    let verdict = if is_flooded {
        Verdict::Any
    } else {
        Verdict::Good
    };
    let version = Version {
        packet,
        ..hands.version(&id, to, text.into_bytes(), verdict)
    };
    let file = hands.file_name();
    hands.put(from, &file, version)
}
