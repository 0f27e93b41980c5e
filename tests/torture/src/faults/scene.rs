//! The workspace before the fault, always the same, so that each run makes the same calls.

use std::io::Write as _;
use std::path::Path;

use settled_tests::list;
use settled_tests::mailroom::Mailroom;

use crate::messages::{self, AGENTS, Message, Mix};

/// The number of messages in a scene.
const MESSAGES: usize = 5;

/// The situation of the daemon before the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// A workspace that was never served.
    Fresh(Mix),
    /// After a kill in the middle of deliveries, with a torn tail on the ledger, and with new messages.
    Killed(Mix),
}

/// A prepared scene.
pub struct Set {
    /// The workspace.
    pub mailroom: Mailroom,
    /// Every message written.
    pub messages: Vec<Message>,
}

impl Scene {
    /// Returns every scene.
    pub fn all() -> Vec<Scene> {
        Mix::ALL
            .into_iter()
            .flat_map(|mix| [Scene::Fresh(mix), Scene::Killed(mix)])
            .collect()
    }

    /// Returns the mix of its messages.
    pub fn mix(self) -> Mix {
        match self {
            Scene::Fresh(mix) | Scene::Killed(mix) => mix,
        }
    }

    /// Prepares the scene. `killed` serves the workspace with a daemon that is killed, in a way of the caller's choice.
    pub fn set(self, killed: impl FnOnce(&Path)) -> Set {
        let mailroom = Mailroom::new(&AGENTS);
        let mut messages = post(&mailroom, self.mix(), 1);
        match self {
            Scene::Fresh(_) => {}
            Scene::Killed(mix) => {
                killed(mailroom.root());
                let segment = list(mailroom.root().join(".settled/ledger")).pop();
                let segment = segment.expect("the kill comes after the first batch was committed");
                let file = std::fs::File::options().append(true).open(segment);
                file.and_then(|mut file| file.write_all(b"{\"v\":1,\"seq\":"))
                    .expect("a ledger to tear");
                messages.extend(post(&mailroom, mix, 2));
            }
        }
        Set { mailroom, messages }
    }
}

/// Writes a lot of messages.
fn post(mailroom: &Mailroom, mix: Mix, lot: u64) -> Vec<Message> {
    let messages = mix.messages(MESSAGES, lot);
    for message in &messages {
        messages::post(mailroom.root(), message);
    }
    messages
}
