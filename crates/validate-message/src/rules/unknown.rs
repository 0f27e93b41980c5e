//! Fields that the schema does not name: an error in the envelope, a warning in bodies and packets, allowed where the
//! schema leaves a mapping free.

use message_schema::schema::{Shape, Step};
use message_schema::yaml::{Field, Node};
use message_schema::{Level, Schema};

use super::Document;
use super::document::{BreachKind, NO_REMARK, below, dotted, is_remark, visible};
use super::walk::Walk;
use crate::suggest::{nearest, synonym};
use crate::violation::{Violation, shown};

impl Document<'_> {
    fn unknown(&self, path: &[Step], field: &Field, absent: &[&str]) -> Violation {
        let mut text = format!(
            "`{}` is not a field of {}",
            visible(&dotted(path)),
            self.noun()
        );
        if is_remark(&field.key) {
            text += ": the comment in it counts as part of a name";
        }
        let violation = self
            .violation(BreachKind::Unknown, path, field.key_place, text)
            .found(&field.key);
        let violation = match self.level_of_unknown() {
            Level::Error => violation,
            Level::Warning => violation.warning(),
        };
        if is_remark(&field.key) {
            return violation.fix(NO_REMARK);
        }
        let near = nearest(&field.key, absent.iter().copied());
        match near.or_else(|| synonym(&field.key, absent.iter().copied())) {
            Some(name) => violation.fix(format!("did you mean `{name}`?")),
            None if field.key.contains(' ') => violation.fix(
                "remove the line if it is prose, or indent it if it belongs to the lines above",
            ),
            None if self.is_of_envelope(path, &field.key) => violation.fix(format!(
                "write `{}` beside `body`, not in it",
                shown(&field.key)
            )),
            None => violation,
        }
    }

    /// True if a field directly in a body belongs to the envelope.
    fn is_of_envelope(&self, path: &[Step], key: &str) -> bool {
        !self.prefix.is_empty() && path.len() == 1 && Schema::Envelope.shape().field(key).is_some()
    }

    fn level_of_unknown(&self) -> Level {
        match self.schema {
            Schema::Envelope => Level::Error,
            Schema::ReviewRequest
            | Schema::ReviewFeedback
            | Schema::ReviewAddressed
            | Schema::ReviewLgtm
            | Schema::FindingsPacket
            | Schema::ChangesPacket
            | Schema::Report => Level::Warning,
        }
    }

    fn noun(&self) -> String {
        match self.schema {
            Schema::Envelope => "the envelope".to_owned(),
            Schema::FindingsPacket => "a findings packet".to_owned(),
            Schema::ChangesPacket => "a packet of changed files".to_owned(),
            Schema::ReviewRequest
            | Schema::ReviewFeedback
            | Schema::ReviewAddressed
            | Schema::ReviewLgtm
            | Schema::Report => format!("a {}", self.schema.name()),
        }
    }
}

impl Walk<'_> {
    /// Reports the fields of a mapping that its schema does not name.
    pub(super) fn strangers(&mut self, mapping: &Node, strangers: &[&Field], shape: &Shape) {
        let absent: Vec<&str> = shape
            .names()
            .filter(|name| mapping.field(name).is_none())
            .collect();
        let above = Step::path(&self.path);
        for field in strangers {
            let path = below(&above, &field.key);
            if !self.misspelt.contains(&path) && !self.document.explained.contains(&path) {
                if self.found.is_full(self.document.level_of_unknown()) {
                    return;
                }
                self.found
                    .push(self.document.unknown(&path, field, &absent));
            }
        }
    }
}
