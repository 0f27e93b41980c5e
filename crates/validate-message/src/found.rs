//! The violations found so far, limited to a number that a person would read: a packet of 256 KiB can break fifty
//! thousand rules, and its report must not be as long as a book.

use message_schema::Level;

use crate::violation::Violation;

/// The most errors, and the most warnings, reported for one message.
pub(crate) const TOLD_MAX: usize = 200;

/// The violations of one message so far.
#[derive(Default)]
pub(crate) struct Found {
    errors: Vec<Violation>,
    warnings: Vec<Violation>,
    is_cut: bool,
}

impl Found {
    /// Keeps the violation, unless there are enough of its level already. Warnings never take an error's place, so that
    /// a wrong message never counts as correct.
    pub(crate) fn push(&mut self, violation: Violation) {
        if self.is_full(violation.level) {
            return;
        }
        match violation.level {
            Level::Error => self.errors.push(violation),
            Level::Warning => self.warnings.push(violation),
        }
    }

    /// True if no more violations of that level are kept. The caller asks before it words a violation; a true answer
    /// counts that violation as left out.
    pub(crate) fn is_full(&mut self, level: Level) -> bool {
        let kept = match level {
            Level::Error => &self.errors,
            Level::Warning => &self.warnings,
        };
        let is_full = kept.len() >= TOLD_MAX;
        self.is_cut |= is_full;
        is_full
    }

    /// Returns the number of errors kept.
    pub(crate) fn errors(&self) -> usize {
        self.errors.len()
    }

    /// True if a violation was left out.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the violations kept, errors first.
    pub(crate) fn into_vec(self) -> Vec<Violation> {
        let mut all = self.errors;
        all.extend(self.warnings);
        all
    }
}
