//! The canonical form of a message: fields in the order of the protocol, one a line, quoted as we write messages
//! ourselves, the body as a literal block with its exact letters. Comments stay with their field. Formatting is
//! idempotent. A signed message stays unchanged, because its signature covers the bytes. The command chooses which
//! files to read and write.

mod comments;
mod field;

use message_schema::envelope::ORDER;
use message_schema::yaml::Field;
use message_schema::{Malformed, parse};

use crate::content::values_of_text;
use crate::signed::is_signed;
use comments::Comments;

/// Why a message has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unformatted {
    /// It cannot be parsed.
    Malformed(Malformed),
    /// It is signed, and its bytes must stay as they are.
    Signed,
    /// Another form might not be equivalent: the message holds a lone carriage return, letters that have no other form,
    /// or a comment that belongs to no field.
    Uncertain,
}

/// Returns the canonical form of a message, which has the same values.
pub fn format(bytes: &[u8]) -> Result<String, Unformatted> {
    let message = parse(bytes).map_err(Unformatted::Malformed)?;
    if is_signed(bytes) {
        return Err(Unformatted::Signed);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Unformatted::Uncertain)?;
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .replace("\r\n", "\n");
    if text.contains('\r') {
        return Err(Unformatted::Uncertain);
    }
    let form = written_out(
        message.root().fields(),
        &Comments::of(&text, message.root()),
    );
    let says_the_same = |form: &String| {
        parse(form.as_bytes())
            .is_ok_and(|formed| values_of_text(&formed) == values_of_text(&message))
    };
    // A comment after an empty block, for example, belongs to no field; then the message keeps its form.
    let keeps_remarks = |form: &String| form.matches('#').count() == text.matches('#').count();
    Some(form)
        .filter(says_the_same)
        .filter(keeps_remarks)
        .ok_or(Unformatted::Uncertain)
}

fn written_out(fields: &[Field], comments: &Comments) -> String {
    let mut order: Vec<usize> = (0..fields.len()).collect();
    order.sort_by_key(|at| rank(&fields[*at].key));
    let mut out = String::new();
    lines(&comments.head, &mut out);
    for at in order {
        lines(&comments.above[at], &mut out);
        let written = field::written(&fields[at]);
        match &comments.behind[at] {
            Some(comment) => {
                let (first, rest) = written.split_once('\n').unwrap_or((&written, ""));
                out.push_str(&format!("{first}  {comment}\n{rest}"));
            }
            None => out.push_str(&written),
        }
    }
    lines(&comments.tail, &mut out);
    out
}

fn rank(name: &str) -> usize {
    let known = ORDER.iter().position(|known| *known == name);
    known.unwrap_or(if name == "body" {
        ORDER.len() + 1
    } else {
        ORDER.len()
    })
}

fn lines(comments: &[String], out: &mut String) {
    comments
        .iter()
        .for_each(|comment| out.extend([comment, "\n"]));
}
