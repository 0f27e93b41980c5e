//! The state of the smallest daemon as lines, for its snapshots.

use std::io;
use std::sync::Arc;

use spool::{Entry, Fold, RowKey, Rows, VisitError};

use crate::daemon::State;

/// The records after which a start writes a snapshot: few, so that a test of a long start is short.
pub(crate) const PORTION: u64 = 1024;

impl Fold for State {
    fn portion(&self) -> u64 {
        PORTION
    }

    fn form(&self) -> String {
        "test 1".to_owned()
    }

    fn clear(&mut self) {
        *self = State {
            next: 1,
            ..State::default()
        };
    }

    fn add(&mut self, entry: &Entry) -> Result<(), VisitError> {
        self.apply(entry);
        Ok(())
    }

    fn save(&self, line: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let State {
            accepted,
            names,
            judged,
            next,
        } = self;
        let accepted = accepted.iter().map(|digest| format!("accepted {digest}"));
        let names = names
            .iter()
            .map(|(place, file)| format!("name {place} {file}"));
        let judged = judged
            .iter()
            .map(|((kind, what), count)| format!("judged {kind} {what} {count}"));
        let next = std::iter::once(format!("next {next}"));
        accepted
            .chain(names)
            .chain(judged)
            .chain(next)
            .try_for_each(|text| line(text.as_bytes()))
    }

    fn new_rows(&self) -> Vec<(RowKey, &[u8])> {
        Vec::new()
    }

    fn is_removal(&self, _: &RowKey, _: &[u8]) -> bool {
        false
    }

    fn rest_on(&mut self, _: &Arc<Rows>) {}

    fn restore(
        &mut self,
        lines: &mut dyn Iterator<Item = Vec<u8>>,
        _: &Arc<Rows>,
    ) -> Result<(), VisitError> {
        self.clear();
        for line in lines {
            let line = String::from_utf8(line)?;
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["accepted", digest] => {
                    self.accepted.insert(digest.parse()?);
                }
                ["name", place, file] => {
                    self.names.insert(((*place).to_owned(), file.parse()?));
                }
                ["judged", kind, what, count] => {
                    self.judged
                        .insert(((*kind).to_owned(), (*what).to_owned()), count.parse()?);
                }
                ["next", next] => self.next = next.parse()?,
                _ => return Err(format!("no line of ours: {line}").into()),
            }
        }
        Ok(())
    }
}
