//! The messages of a walk. Each distinct text is parsed and checked once, like a file from an outbox, and posted in
//! every state that it fits; `moves` decides which.

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
/// Another agent with a mailbox, who in one walk is a second reviewer.
pub(crate) const THIRD: &str = "gemini";
/// The pull request, or the first of two.
pub(crate) const PR: &str = "86";

/// The instant a walk begins.
pub(crate) fn start() -> DateTime<Utc> {
    DateTime::from_timestamp(1_770_976_800, 0).expect("an instant within the calendar")
}

/// Returns the time of a kind of message, the same wherever it comes: so equal states recur, and a message that renewed
/// a deadline would show, since it comes later.
pub(crate) fn minute(number: i64) -> DateTime<Utc> {
    start() + TimeDelta::minutes(number)
}

/// Returns an agent's name.
pub(crate) fn agent(name: &str) -> AgentName {
    AgentName::new(name).expect("an agent name")
}

/// A message that can be posted.
#[derive(Debug)]
pub(crate) struct Input {
    /// Its description in a few words.
    pub(crate) label: String,
    /// The owner of its outbox.
    pub(crate) outbox: AgentName,
    /// The digest of its text.
    pub(crate) digest: ContentDigest,
    /// The checked message.
    pub(crate) valid: Valid,
    /// The time at which it is posted.
    pub(crate) at: DateTime<Utc>,
    /// Its packet's saying about each thread; empty if it has none.
    pub(crate) says: Vec<Say>,
    /// True if it may leave threads without an action, because its reviewer's budget is spent.
    pub(crate) carries: bool,
}

/// The messages of one round of one reviewer.
#[derive(Debug)]
pub(crate) struct Hand {
    /// Responses to the open request, one feedback and one lgtm for each combination of sayings.
    pub(crate) full: Vec<Arc<Input>>,
    /// All other messages: the author's, and responses that are odd in another way.
    pub(crate) rest: Vec<Arc<Input>>,
    /// The messages that the author is advised to send.
    pub(crate) advised: Advised,
}

/// The messages that the author is advised to send, with their placeholders filled in.
#[derive(Debug)]
pub(crate) struct Advised {
    /// A plain request.
    pub(crate) request: Arc<Input>,
    /// A request for a head that was not reviewed.
    pub(crate) request_of_a_head: Arc<Input>,
    /// A report on the round.
    pub(crate) addressed: Arc<Input>,
}

/// A line, a round, a kind of response, and what it says about each thread.
type ResponseKey = (Line, u32, Response, Vec<Say>);

/// All messages of a walk.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// The messages of each round, by pull request and reviewer.
    hands: Vec<(Line, Vec<OnceLock<Hand>>)>,
    /// Responses to the threads of one state.
    responses: Mutex<BTreeMap<ResponseKey, Arc<Input>>>,
}

/// A pull request with one of its reviewers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Line {
    /// The pull request.
    pub(crate) pr: &'static str,
    /// The reviewer.
    pub(crate) reviewer: &'static str,
}

impl Line {
    /// Returns every pull request with every reviewer.
    pub(crate) fn all(bounds: &Bounds) -> impl Iterator<Item = Self> + use<> {
        let (prs, reviewers) = (bounds.prs, bounds.reviewers);
        prs.iter()
            .flat_map(move |pr| reviewers.iter().map(move |reviewer| Self { pr, reviewer }))
    }

    /// Returns the key of its review.
    pub(crate) fn key(self) -> ReviewKey {
        let pr = PrNumber::new(self.pr).expect("a number");
        ReviewKey::new(None, &pr, agent(AUTHOR), agent(self.reviewer))
    }
}

/// A response that the rules accept wherever one is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Response {
    /// Escalates every open thread, and so the review.
    Feedback,
    /// Resolves every open thread.
    Lgtm,
}

impl Inputs {
    /// Makes inputs without any messages yet.
    pub(crate) fn new(bounds: &Bounds) -> Self {
        let rounds = || (0..=bounds.rounds_max()).map(|_| OnceLock::new()).collect();
        Self {
            hands: Line::all(bounds).map(|line| (line, rounds())).collect(),
            responses: Mutex::default(),
        }
    }

    /// Returns the messages between the author and this reviewer about this pull request in this round.
    pub(crate) fn hand(&self, bounds: &Bounds, line: Line, round: u32) -> &Hand {
        let of_line = self.hands.iter().find(|(known, _)| *known == line);
        let (_, rounds) = of_line.expect("only the walk's reviewers have reviews");
        let place = usize::try_from(round).expect("a round is a small number");
        rounds[place].get_or_init(|| write::deal(bounds, line, round))
    }

    /// Returns a response to these open threads, each given by its slot.
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
