//! Warns of texts that are valid but probably not what the writer meant: a required text that is `null`, and a text
//! that a comment's `#` cuts short. The text counts as written.

use message_schema::envelope::MessageType;
use message_schema::schema::{Shape, Step};
use message_schema::yaml::{Node, Scalar, Tail};
use message_schema::{Code, Level, Schema};

use super::Document;
use super::document::{BreachKind, dotted};
use super::suggestions::{in_quotes, lead};
use super::walk::{Presence, Walk};
use crate::violation::{Violation, shown};

impl Document<'_> {
    /// True if it is the body of a review message: the rules of the body refuse a bare text there.
    fn is_body_of_fields(&self, path: &[Step]) -> bool {
        let kind = self
            .root
            .field_text("type")
            .and_then(MessageType::from_word);
        self.schema == Schema::Envelope
            && path == [Step::Key("body".to_owned())]
            && kind.is_some_and(MessageType::is_review)
    }

    /// Returns the warning about a text that a comment cuts off.
    fn cut(&self, path: &[Step], scalar: &Scalar, tail: &Tail) -> Violation {
        let name = dotted(path);
        let text = match scalar.text.trim() {
            "" => format!("`{name}` is empty: YAML starts a comment at the `#`"),
            kept => format!(
                "`{name}` is only `{}`: YAML starts a comment at the `#`",
                shown(kept)
            ),
        };
        self.violation(BreachKind::Invalid, path, tail.place, text)
            .found(&tail.text)
            .expected("a text in quotes")
            .fix(format!(
                "{}; a comment has a space after the `#`",
                in_quotes(&lead(path), &scalar.text, tail)
            ))
    }

    /// Returns the warning about a required text that other readers take for none.
    fn null(&self, path: &[Step], node: &Node, shape: &Shape, word: &str) -> Violation {
        let text = format!(
            "`{}` is null, which Settled reads as the letters `{word}`",
            dotted(path)
        );
        self.violation(BreachKind::Invalid, path, node.place, text)
            .found(word)
            .expected(shape.expected())
            .fix(format!(
                "write the value, or `\"{word}\"` if these letters are meant"
            ))
    }
}

impl Walk<'_> {
    /// Warns of a suspicious text that is not refused already.
    pub(super) fn scalar(
        &mut self,
        node: &Node,
        scalar: &Scalar,
        shape: &Shape,
        presence: Presence,
    ) {
        let is_text = shape.is_prose() || shape.is_one_line() || shape.is_anything();
        let cut = scalar.tail.as_ref().filter(|_| is_text);
        if cut.is_none() && (presence == Presence::Optional || !node.is_null()) {
            return;
        }
        let path = Step::path(&self.path);
        let violation = match cut {
            Some(tail) => self.document.cut(&path, scalar, tail),
            None => self.document.null(&path, node, shape, scalar.text.trim()),
        };
        let is_told = self.refused.contains(&path)
            || self.document.explained.contains(&path)
            || self.document.is_body_of_fields(&path);
        if !is_told && !self.found.is_full(Level::Warning) {
            self.found.push(
                Violation {
                    code: Code::TextDoubtful,
                    ..violation
                }
                .warning(),
            );
        }
    }
}
