//! Keeps review messages in order while they wait: one whose packet is missing holds up the later ones of its outbox to
//! the same recipient. Only the first message of each line is worth another look.

use std::collections::{BTreeMap, HashMap};

use message_schema::id::AgentName;
use message_schema::limit::HELD_MAX;
use spool::FileName;

/// The held messages of all outboxes.
#[derive(Debug, Default)]
pub(crate) struct HeldMessages {
    outboxes: HashMap<String, HeldOutbox>,
}

/// The held messages of one outbox, each with its recipient and its place: the order in which the daemon first saw them.
#[derive(Debug, Default)]
struct HeldOutbox {
    messages: HashMap<FileName, (AgentName, u64)>,
    /// The messages to each recipient, by place.
    lines: HashMap<AgentName, BTreeMap<u64, FileName>>,
    next_place: u64,
}

impl HeldMessages {
    pub(crate) fn is_empty(&self) -> bool {
        self.outboxes.is_empty()
    }

    /// The place of a held message in its outbox; `u64::MAX` for one that is not held.
    pub(crate) fn place(&self, agent: &str, file: &FileName) -> u64 {
        let outbox = self.outboxes.get(agent);
        let held = outbox.and_then(|outbox| outbox.messages.get(file));
        held.map_or(u64::MAX, |(_, place)| *place)
    }

    /// True if an earlier message of the outbox to this recipient is held.
    pub(crate) fn is_behind(&self, agent: &str, file: &FileName, to: &AgentName) -> bool {
        let line = self
            .outboxes
            .get(agent)
            .and_then(|outbox| outbox.lines.get(to));
        let first = line.and_then(BTreeMap::first_key_value);
        first.is_some_and(|(first, _)| *first < self.place(agent, file))
    }

    /// Holds a message behind all others of its outbox; false if the outbox already holds [`HELD_MAX`].
    pub(crate) fn hold(&mut self, agent: &str, file: &FileName, to: AgentName) -> bool {
        let outbox = self.outboxes.entry(agent.to_owned()).or_default();
        if outbox.messages.contains_key(file) {
            return true;
        }
        if outbox.messages.len() >= HELD_MAX {
            return false;
        }
        let place = outbox.next_place;
        outbox.next_place += 1;
        let line = outbox.lines.entry(to.clone()).or_default();
        line.insert(place, file.clone());
        outbox.messages.insert(file.clone(), (to, place));
        true
    }

    /// Releases a message that was judged or withdrawn, and returns the one that nothing holds up any more.
    pub(crate) fn release(&mut self, agent: &str, file: &FileName) -> Option<FileName> {
        let outbox = self.outboxes.get_mut(agent)?;
        let (to, place) = outbox.messages.remove(file)?;
        let line = outbox.lines.get_mut(&to)?;
        line.remove(&place);
        let first = line.first_key_value();
        let freed = first.filter(|(first, _)| **first > place);
        let freed = freed.map(|(_, file)| file.clone());
        if line.is_empty() {
            outbox.lines.remove(&to);
        }
        if outbox.messages.is_empty() {
            self.outboxes.remove(agent);
        }
        freed
    }

    /// The held messages for which `is_wanted` is true.
    pub(crate) fn all(
        &self,
        mut is_wanted: impl FnMut(&str, &FileName) -> bool,
    ) -> Vec<(String, FileName)> {
        self.outboxes
            .iter()
            .flat_map(|(agent, outbox)| outbox.messages.keys().map(move |file| (agent, file)))
            .filter(|(agent, file)| is_wanted(agent, file))
            .map(|(agent, file)| (agent.clone(), file.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> FileName {
        FileName::new(name).expect("a name")
    }

    fn agent(name: &str) -> AgentName {
        AgentName::new(name).expect("a name")
    }

    /// Holds these messages, `NAME:RECIPIENT`, in order.
    fn held(messages: &[&str]) -> HeldMessages {
        let mut held = HeldMessages::default();
        for message in messages {
            let (name, to) = message.split_once(':').expect("a name and a recipient");
            assert!(held.hold("codex", &file(name), agent(to)));
        }
        held
    }

    #[test]
    fn a_message_waits_for_earlier_ones_to_the_same_recipient_of_its_own_outbox() {
        let held = held(&["a:claude", "b:gemini", "c:claude"]);
        let new = file("new");
        assert!(held.is_behind("codex", &new, &agent("claude")));
        assert!(held.is_behind("codex", &new, &agent("gemini")));
        assert!(!held.is_behind("codex", &new, &agent("other")));
        assert!(!held.is_behind("claude", &new, &agent("claude")));
        assert!(!held.is_behind("codex", &file("a"), &agent("claude")));
        assert!(!held.is_behind("codex", &file("b"), &agent("gemini")));
        assert!(held.is_behind("codex", &file("c"), &agent("claude")));
    }

    #[test]
    fn only_the_first_of_a_line_lets_the_next_one_go() {
        let mut held = held(&["a:claude", "b:gemini", "c:claude", "d:claude", "e:gemini"]);
        assert_eq!(held.release("codex", &file("c")), None, "a is before d");
        assert_eq!(held.release("codex", &file("a")), Some(file("d")));
        assert_eq!(held.release("codex", &file("a")), None, "it is gone");
        assert_eq!(held.release("codex", &file("b")), Some(file("e")));
        assert_eq!(held.release("codex", &file("e")), None);
        assert!(!held.is_empty());
        assert_eq!(held.release("codex", &file("d")), None);
        assert!(held.is_empty());
    }

    #[test]
    fn an_outbox_holds_so_many_and_no_more() {
        let mut held = HeldMessages::default();
        let mut hold = |outbox: &str, name: &str| held.hold(outbox, &file(name), agent("claude"));
        for number in 0..HELD_MAX {
            assert!(hold("codex", &number.to_string()));
        }
        assert!(!hold("codex", "more"));
        assert!(hold("codex", "0"), "it is held already");
        assert!(hold("gemini", "more"), "another outbox");
        held.release("codex", &file("7"));
        assert!(held.hold("codex", &file("more"), agent("claude")));
    }
}
