//! Keeps review messages in order while they wait: one whose packet is missing holds up the later ones of its outbox to
//! the same recipient. Only the first message of each line is worth another look.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use message_schema::limit::HELD_MAX;
use spool::FileName;

/// The held messages of all outboxes.
#[derive(Debug, Default)]
pub(crate) struct HeldMessages {
    outboxes: HashMap<String, HeldOutbox>,
}

/// The held messages of one outbox, each with its place: the order in which the daemon first saw them.
#[derive(Debug, Default)]
struct HeldOutbox {
    places: HashMap<FileName, u64>,
    by_place: BTreeMap<u64, HeldMessage>,
    /// The places of the messages to each recipient.
    lines: HashMap<String, BTreeSet<u64>>,
}

#[derive(Debug)]
struct HeldMessage {
    file: FileName,
    /// Each recipient once: nobody has checked the message yet, so its `to` may name one twice.
    to: BTreeSet<String>,
}

impl HeldMessages {
    pub(crate) fn is_empty(&self) -> bool {
        self.outboxes.is_empty()
    }

    /// The place of a held message in its outbox; `u64::MAX` for one that is not held.
    pub(crate) fn place(&self, agent: &str, file: &FileName) -> u64 {
        let outbox = self.outboxes.get(agent);
        outbox
            .and_then(|outbox| outbox.places.get(file))
            .copied()
            .unwrap_or(u64::MAX)
    }

    /// True if an earlier message of the outbox to one of these recipients is held.
    pub(crate) fn is_behind(&self, agent: &str, file: &FileName, to: &[&str]) -> bool {
        let Some(outbox) = self.outboxes.get(agent) else {
            return false;
        };
        let place = self.place(agent, file);
        to.iter()
            .filter_map(|to| outbox.lines.get(*to)?.first())
            .any(|first| *first < place)
    }

    /// Holds a message behind all others of its outbox; false if the outbox already holds [`HELD_MAX`].
    pub(crate) fn hold(&mut self, agent: &str, file: &FileName, to: &[&str]) -> bool {
        let outbox = self.outboxes.entry(agent.to_owned()).or_default();
        if outbox.places.contains_key(file) {
            return true;
        }
        if outbox.places.len() >= HELD_MAX {
            return false;
        }
        let place = outbox
            .by_place
            .last_key_value()
            .map_or(0, |(last, _)| last + 1);
        let to: BTreeSet<String> = to.iter().map(|to| (*to).to_owned()).collect();
        for to in &to {
            outbox.lines.entry(to.clone()).or_default().insert(place);
        }
        outbox.places.insert(file.clone(), place);
        let file = file.clone();
        outbox.by_place.insert(place, HeldMessage { file, to });
        true
    }

    /// Releases a message that was judged or withdrawn, and returns those that nothing holds up any more.
    pub(crate) fn release(&mut self, agent: &str, file: &FileName) -> Vec<FileName> {
        let Some(outbox) = self.outboxes.get_mut(agent) else {
            return Vec::new();
        };
        let Some(place) = outbox.places.remove(file) else {
            return Vec::new();
        };
        let freed = outbox.release(place);
        if outbox.places.is_empty() {
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
            .flat_map(|(agent, outbox)| outbox.places.keys().map(move |file| (agent, file)))
            .filter(|(agent, file)| is_wanted(agent, file))
            .map(|(agent, file)| (agent.clone(), file.clone()))
            .collect()
    }
}

impl HeldOutbox {
    fn release(&mut self, place: u64) -> Vec<FileName> {
        let Some(released) = self.by_place.remove(&place) else {
            return Vec::new();
        };
        let mut next = BTreeSet::new();
        for to in released.to {
            let Entry::Occupied(mut line) = self.lines.entry(to) else {
                continue;
            };
            let was_first = line.get().first() == Some(&place);
            line.get_mut().remove(&place);
            match line.get().first() {
                Some(first) if was_first => {
                    next.insert(*first);
                }
                Some(_) => {}
                None => {
                    line.remove();
                }
            }
        }
        // A message with several recipients is free once it is the first in each of their lines.
        let is_first = |place, to| self.lines.get(to).and_then(BTreeSet::first) == Some(place);
        next.iter()
            .filter_map(|place| Some((place, self.by_place.get(place)?)))
            .filter(|(place, held)| held.to.iter().all(|to| is_first(*place, to)))
            .map(|(_, held)| held.file.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> FileName {
        FileName::new(name).expect("a name")
    }

    /// Holds these messages, `NAME:RECIPIENT,RECIPIENT`, in order.
    fn held(messages: &[&str]) -> HeldMessages {
        let mut held = HeldMessages::default();
        for message in messages {
            let (name, to) = message.split_once(':').expect("a name and recipients");
            let to: Vec<&str> = to.split(',').collect();
            assert!(held.hold("codex", &file(name), &to));
        }
        held
    }

    #[test]
    fn a_message_waits_for_earlier_ones_to_the_same_recipient_of_its_own_outbox() {
        let held = held(&["a:claude", "b:gemini"]);
        let new = file("new");
        assert!(held.is_behind("codex", &new, &["claude"]));
        assert!(held.is_behind("codex", &new, &["other", "gemini"]));
        assert!(!held.is_behind("codex", &new, &["other"]));
        assert!(!held.is_behind("claude", &new, &["claude"]));
        assert!(!held.is_behind("codex", &file("a"), &["claude"]));
        assert!(!held.is_behind("codex", &file("b"), &["gemini"]));
    }

    #[test]
    fn only_the_first_of_every_line_it_stands_in_is_let_go() {
        let mut held = held(&["a:claude", "b:claude,gemini", "c:gemini", "d:claude"]);
        assert_eq!(held.release("codex", &file("c")), []);
        assert_eq!(held.release("codex", &file("a")), [file("b")]);
        assert_eq!(held.release("codex", &file("b")), [file("d")]);
        assert_eq!(held.release("codex", &file("b")), []);
        assert_eq!(held.release("codex", &file("d")), []);
        assert!(held.is_empty());

        let mut held = self::held(&["a:claude", "b:gemini", "c:claude,gemini"]);
        assert_eq!(held.release("codex", &file("a")), [], "b is before it");
        assert_eq!(held.release("codex", &file("b")), [file("c")]);
    }

    #[test]
    fn a_recipient_named_twice_is_one_recipient() {
        let mut held = held(&["a:claude,claude", "b:claude"]);
        assert_eq!(held.release("codex", &file("a")), [file("b")]);
        assert_eq!(held.release("codex", &file("b")), []);
        let mut alone = self::held(&["a:claude,claude"]);
        assert_eq!(alone.release("codex", &file("a")), []);
        assert!(alone.is_empty());
    }

    #[test]
    fn an_outbox_holds_so_many_and_no_more() {
        let mut held = HeldMessages::default();
        for number in 0..HELD_MAX {
            assert!(held.hold("codex", &file(&number.to_string()), &["claude"]));
        }
        assert!(!held.hold("codex", &file("more"), &["claude"]));
        assert!(
            held.hold("codex", &file("0"), &["claude"]),
            "it is held already"
        );
        assert!(
            held.hold("gemini", &file("more"), &["claude"]),
            "another outbox"
        );
        held.release("codex", &file("7"));
        assert!(held.hold("codex", &file("more"), &["claude"]));
    }
}
