//! The next legal steps of a review, with the agent that can take each, or the reason there is none. Reports, briefs
//! and screens repeat them, so they never name a step that the rules would refuse.

use message_schema::Code;
use review_words::key::ReviewKey;
use review_words::phase::{CloseReason, Phase};
use review_words::pulls::Pull;
use review_words::refusal::Fault;

use crate::parts::review::{FIX_REVIEWS_MAX, GENERATIONS_MAX, Review};
use crate::parts::state::State;

impl State {
    /// Returns the messages that can be sent next, each with its sender, for reports and for the screen. `review` may
    /// be one step ahead of the state.
    pub fn legal_next(&self, key: &ReviewKey, review: &Review) -> Vec<String> {
        let (author, reviewer) = (&key.author, review.reviewer(key));
        let request = |more: String| match self.no_request(key, review) {
            None => format!("{author}: review_request{more}"),
            Some(fault) => format!("a person decides: {}", fault.message),
        };
        match &review.phase {
            Phase::Reviewing(_) => vec![
                format!("{reviewer}: review_feedback with round: {}", review.round),
                format!("{reviewer}: review_lgtm, if the quality gate passes"),
            ],
            Phase::Awaiting { .. } => vec![request(format!(" for round {}", review.round))],
            Phase::Fixing { .. } if review.open_blockers() == 0 => vec![
                request(format!(" for round {}", review.round + 1)),
                format!("{author}: review_addressed with round: {}", review.round),
            ],
            Phase::Fixing { .. } => {
                vec![format!(
                    "{author}: review_addressed with round: {}",
                    review.round
                )]
            }
            Phase::Addressed { .. } => vec![request(format!(" for round {}", review.round + 1))],
            Phase::Approved(_) => {
                vec![request(
                    " with a declared_head that was not approved".to_owned(),
                )]
            }
            Phase::Escalated(_) => vec!["a person decides".to_owned()],
            Phase::Closed(CloseReason::Commented) => vec![match self.no_generation(key) {
                None => "a person can reopen the review".to_owned(),
                Some(fault) => format!("a person decides: {}", fault.message),
            }],
            Phase::Closed(CloseReason::Merged | CloseReason::NotMerged) => {
                let once = match self.is_open_again(key) {
                    true => "",
                    false => ", once the pull request is open again",
                };
                vec![request(once.to_owned())]
            }
        }
    }

    /// True if an event opened the pull request after it closed the review. The notice about that close is written one
    /// step ahead, while the review is not closed yet and its pull request still open.
    fn is_open_again(&self, key: &ReviewKey) -> bool {
        let before = self.review(key);
        before.is_some_and(|before| matches!(before.phase, Phase::Closed(_)))
            && !self.is_pull_over(key)
    }

    /// Returns the reason the rules would refuse any request of the author, if the author is to move or the review has
    /// ended.
    pub fn no_request(&self, key: &ReviewKey, review: &Review) -> Option<Fault> {
        match &review.phase {
            Phase::Awaiting { .. }
            | Phase::Reviewing(_)
            | Phase::Fixing { .. }
            | Phase::Addressed { .. } => self.reviews_used_up(key),
            Phase::Approved(_) | Phase::Escalated(_) => self
                .no_generation(key)
                .or_else(|| self.pull_over(key))
                .or_else(|| left_to_a_person(review)),
            Phase::Closed(_) => self.no_generation(key).or_else(|| left_to_a_person(review)),
        }
    }

    /// Returns the reason nobody can open another generation.
    pub fn no_generation(&self, key: &ReviewKey) -> Option<Fault> {
        self.generations_used_up(key)
            .or_else(|| self.reviews_used_up(key))
    }

    fn generations_used_up(&self, key: &ReviewKey) -> Option<Fault> {
        let used = self.generations_used(key);
        (used >= GENERATIONS_MAX).then(|| {
            over(format!(
                "pull request {} has used its {GENERATIONS_MAX} generations",
                key.pr
            ))
            .expected(format!(
                "at most {GENERATIONS_MAX} generations over the life of a pull request"
            ))
        })
    }

    /// Returns the reason no reviewer can be asked any more: a fix pull request has a fixed number of reviews, over all
    /// its reviewers.
    pub(crate) fn reviews_used_up(&self, key: &ReviewKey) -> Option<Fault> {
        self.has_no_review_left(key.repo.as_ref(), &key.pr)
            .then(|| no_review_left(key))
    }

    /// Returns the reason a closed or merged pull request takes no new generation.
    pub(crate) fn pull_over(&self, key: &ReviewKey) -> Option<Fault> {
        let pull = self.pull(key.repo.as_ref(), &key.pr);
        let Pull { last, .. } = pull.filter(|pull| !pull.is_open())?;
        let why = format!("pull request {} is {}", key.pr, last.word());
        Some(Fault::new(Code::ReviewClosed, why))
    }
}

/// Returns the reason no generation can end in an approval: a person holds everything that blocks.
pub(crate) fn left_to_a_person(review: &Review) -> Option<Fault> {
    review.is_left_to_a_person().then(|| {
        let why = "a person holds every blocking thread and decides first";
        Fault::new(Code::ReviewClosed, why)
    })
}

/// The fault of a request for another review of a fix pull request.
pub(crate) fn no_review_left(key: &ReviewKey) -> Fault {
    over(format!(
        "fix pull request {} has had its {FIX_REVIEWS_MAX} reviews",
        key.pr
    ))
    .expected(format!(
        "at most {FIX_REVIEWS_MAX} reviews over the life of a fix pull request"
    ))
}

fn over(why: String) -> Fault {
    Fault::new(Code::IterationLimitExceeded, why)
        .fix("a person decides what happens to this pull request")
}
