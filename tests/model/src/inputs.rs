//! The messages of a walk: each distinct text is read and checked once, like a file from an
//! outbox, and posted in every state it fits. It leaves to `moves` which are posted where.

mod write;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::id::{AgentName, PrNumber};
use message_schema::packet::Action;
use review::{ContentDigest, ReviewKey};
use validate_message::Valid;

use crate::bounds::Bounds;
use crate::describe::Say;

/// The author.
pub(crate) const AUTHOR: &str = "claude";
/// The reviewer.
pub(crate) const REVIEWER: &str = "codex";
/// The others with a mailbox; in one walk a second reviewer.
pub(crate) const THIRD: &str = "gemini";
/// The pull request, or the first of two.
pub(crate) const PR: &str = "86";

/// The instant a walk begins.
pub(crate) fn start() -> DateTime<Utc> {
    DateTime::from_timestamp(1_770_976_800, 0).expect("an instant within the calendar")
}

/// A message of a kind comes at one minute of the walk, whatever came before: so the same state
/// comes again, and an answer that renewed a deadline would be seen, since it comes later.
pub(crate) fn minute(number: i64) -> DateTime<Utc> {
    start() + TimeDelta::minutes(number)
}

/// An agent's name.
pub(crate) fn agent(name: &str) -> AgentName {
    AgentName::new(name).expect("an agent name")
}

/// A message that can be posted.
#[derive(Debug)]
pub(crate) struct Input {
    /// What it is, in a few words.
    pub(crate) label: String,
    /// The owner of the outbox it is in.
    pub(crate) outbox: AgentName,
    /// The digest of its text.
    pub(crate) digest: ContentDigest,
    /// The checked message.
    pub(crate) valid: Valid,
    /// When it is posted.
    pub(crate) at: DateTime<Utc>,
    /// What its packet says of each thread; empty when it has none.
    pub(crate) says: Vec<Say>,
    /// Whether it may leave threads without an action: its reviewer's budget is spent.
    pub(crate) carries: bool,
}

/// The messages of one round of one reviewer.
#[derive(Debug)]
pub(crate) struct Hand {
    /// Responses to the open request, one for each combination of what is said of the threads:
    /// feedback, then lgtm.
    pub(crate) full: Vec<Arc<Input>>,
    /// Every other message: the author's, and responses that are odd in another way.
    pub(crate) rest: Vec<Arc<Input>>,
    /// What the author is advised to send.
    pub(crate) advised: Advised,
}

/// What the author is advised to send, with what only it knows filled in.
#[derive(Debug)]
pub(crate) struct Advised {
    /// A request and no more.
    pub(crate) request: Arc<Input>,
    /// A request of a head that was not reviewed.
    pub(crate) request_of_a_head: Arc<Input>,
    /// A report on the round.
    pub(crate) addressed: Arc<Input>,
}

/// A line, a round, and what is said of each thread.
type ResponseKey = (Line, u32, Response, Vec<Say>);

/// All messages of a walk.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// By pull request and reviewer, by round.
    hands: Vec<(Line, Vec<OnceLock<Hand>>)>,
    /// Responses to the threads of one state.
    responses: Mutex<BTreeMap<ResponseKey, Arc<Input>>>,
}

/// A pull request and a reviewer of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Line {
    /// The pull request.
    pub(crate) pr: &'static str,
    /// The reviewer.
    pub(crate) reviewer: &'static str,
}

impl Line {
    /// Every pull request with every reviewer.
    pub(crate) fn all(bounds: &Bounds) -> impl Iterator<Item = Self> + use<> {
        let (prs, reviewers) = (bounds.prs, bounds.reviewers);
        prs.iter()
            .flat_map(move |pr| reviewers.iter().map(move |reviewer| Self { pr, reviewer }))
    }

    /// The key of its review.
    pub(crate) fn key(self) -> ReviewKey {
        let pr = PrNumber::new(self.pr).expect("a number");
        ReviewKey::new(None, &pr, agent(AUTHOR), agent(self.reviewer))
    }
}

/// A response that the rules accept wherever one is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Response {
    /// Every open thread is handed to a person, and the review with them.
    Feedback,
    /// Every open thread is resolved.
    Lgtm,
}

impl Inputs {
    /// Inputs in which nothing is written yet.
    pub(crate) fn new(bounds: &Bounds) -> Self {
        let rounds = || (0..=bounds.rounds_max()).map(|_| OnceLock::new()).collect();
        Self {
            hands: Line::all(bounds).map(|line| (line, rounds())).collect(),
            responses: Mutex::default(),
        }
    }

    /// The messages between the author and this reviewer about this pull request while its round is
    /// `round`.
    pub(crate) fn hand(&self, bounds: &Bounds, line: Line, round: u32) -> &Hand {
        let of_line = self.hands.iter().find(|(known, _)| *known == line);
        let (_, rounds) = of_line.expect("only the walk's reviewers have reviews");
        let place = usize::try_from(round).expect("a round is a small number");
        rounds[place].get_or_init(|| write::deal(bounds, line, round))
    }

    /// A response to these open threads, each by the place of its slot.
    pub(crate) fn response(
        &self,
        bounds: &Bounds,
        line: Line,
        round: u32,
        response: Response,
        open: &[bool],
    ) -> Arc<Input> {
        let act = match response {
            Response::Feedback => Say::Act(Action::Veto, None),
            Response::Lgtm => Say::Act(Action::Resolve, None),
        };
        let says = open
            .iter()
            .map(|is_open| if *is_open { act } else { Say::Silent });
        let says: Vec<Say> = says.collect();
        let mut known = self.responses.lock().expect("nobody panics with the lock");
        let input = known
            .entry((line, round, response, says.clone()))
            .or_insert_with(|| write::response(bounds, line, round, response, &says));
        Arc::clone(input)
    }
}
