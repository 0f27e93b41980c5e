//! A Markdown fence around the whole file, as an agent writes it when it answers in a chat. No message begins with one;
//! text outside of it is left for a person.

use message_schema::Place;

use super::{AppliedFix, Fix};

/// Removes the fence.
pub(super) fn strip(text: &str) -> Option<(String, Vec<AppliedFix>)> {
    let (opening, inside) = text.trim_start().split_once('\n')?;
    let mark = ["```", "~~~"]
        .into_iter()
        .find(|mark| opening.starts_with(mark))?;
    let info = opening[mark.len()..].trim();
    let is_language = info
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let inside = inside
        .trim_end()
        .strip_suffix(mark)
        .filter(|inside| inside.ends_with('\n'))?;
    if !is_language
        || inside
            .lines()
            .any(|line| line.trim_start().starts_with(mark))
    {
        return None;
    }
    let applied = AppliedFix {
        fix: Fix::Fence,
        place: Place::START,
        field: None,
        what: format!("removed the fence {mark} around the file"),
    };
    Some((inside.to_owned(), vec![applied]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fence_around_everything_is_taken_off() {
        let inside = |text: &str| strip(text).map(|(text, _)| text);
        assert_eq!(inside("```yaml\nid: a\n```\n").as_deref(), Some("id: a\n"));
        assert_eq!(inside("\n~~~\nid: a\n~~~").as_deref(), Some("id: a\n"));
        for other in [
            "```yaml\nid: a\n",
            "Here:\n```\nid: a\n```\n",
            "```\na: b\n```\nDone.\n",
            "```\na\n```\nb\n```\n",
            "id: a\n",
            "``` see below\na\n```",
        ] {
            assert_eq!(inside(other), None, "{other:?}");
        }
    }
}
