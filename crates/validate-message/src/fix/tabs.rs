//! Tabs in indentations. YAML does not count them as indentation, and how many columns the writer's editor showed is
//! unknown, so they are replaced only if every width that parses gives the same values.

use message_schema::{Message, Place, ReadBody, parse};

use super::{AppliedFix, Fix, passes};
use crate::content::{Values, values};

/// The tab widths an editor may have shown, in columns.
const WIDTHS: std::ops::RangeInclusive<usize> = 1..=8;

/// The width to write if several give the same values.
const USUAL_WIDTH: usize = 2;

/// The most values to read in all attempts, where 64 bytes count as one: every width is tried, and every line alone. Each
/// takes about 2 us of a processor. In a text that needs more, nothing is replaced.
const READ_MAX: usize = 16 * 1024;

/// The bytes that count as one value.
const BYTES_OF_VALUE: usize = 64;

/// Replaces the tabs that keep the text, or the body in it, from being read.
pub(super) fn replace(text: &str) -> Option<(String, Vec<AppliedFix>)> {
    if !text.contains('\t') || read(text).is_some() {
        return None;
    }
    let tabbed: Vec<usize> = text
        .split('\n')
        .enumerate()
        .filter(|(_, line)| margin(line).contains('\t'))
        .map(|(at, _)| at)
        .collect();
    let attempts = 2 * WIDTHS.count() + tabbed.len();
    let widest = text.len() + text.matches('\t').count() * WIDTHS.end();
    // No value begins without one of these before it.
    let values = text.matches(['\n', ',', ':', '[', '{', '-', '?']).count();
    if attempts * (widest / BYTES_OF_VALUE + values) > READ_MAX {
        return None;
    }
    let width = std::iter::once(USUAL_WIDTH)
        .chain(WIDTHS)
        .find(|width| read(&replaced(text, &tabbed, *width)).is_some())?;
    // A tab at the start of a line of a multi-line text does not trouble the parser.
    let mut wrong = tabbed.clone();
    for line in tabbed {
        let others: Vec<usize> = wrong
            .iter()
            .copied()
            .filter(|other| *other != line)
            .collect();
        if read(&replaced(text, &others, width)).is_some() {
            wrong = others;
        }
    }
    let fixed = replaced(text, &wrong, width);
    let meant = read(&fixed)?;
    let is_certain = WIDTHS
        .filter_map(|width| read(&replaced(text, &wrong, width)))
        .all(|other| other == meant);
    is_certain.then(|| {
        (
            fixed,
            wrong.iter().map(|line| replaced_tab(*line)).collect(),
        )
    })
}

fn replaced_tab(line: usize) -> AppliedFix {
    let line = u32::try_from(line + 1).unwrap_or(u32::MAX);
    AppliedFix {
        fix: Fix::TabIndent,
        place: Place { line, column: 1 },
        field: None,
        what: "spaces indent the line instead of a tab".to_owned(),
    }
}

/// Returns the white space at the start of a line.
fn margin(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn replaced(text: &str, tabbed: &[usize], width: usize) -> String {
    let blanks = " ".repeat(width);
    let line = |(at, line): (usize, &str)| match tabbed.binary_search(&at) {
        Ok(_) => margin(line).replace('\t', &blanks) + &line[margin(line).len()..],
        Err(_) => line.to_owned(),
    };
    text.split('\n')
        .enumerate()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the values of the text, if it and its body can be parsed. Fixes a slip in its type first, which would keep
/// the body from being parsed.
fn read(text: &str) -> Option<Values> {
    let message: Message = parse(passes(text.to_owned()).text.as_bytes()).ok()?;
    match message.read_body() {
        ReadBody::Malformed(_) => None,
        ReadBody::Mapping(_) | ReadBody::Unread => Some(values(&message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "type: review_feedback\nbody: |\n";

    fn fixed(body: &str) -> Option<String> {
        replace(&format!("{HEAD}{body}")).map(|(text, _)| text[HEAD.len()..].to_owned())
    }

    #[test]
    fn a_tab_that_can_only_mean_one_level_is_replaced() {
        assert_eq!(
            fixed("  round: 1\n\tblocking_count: 2\n").as_deref(),
            Some("  round: 1\n  blocking_count: 2\n")
        );
        assert_eq!(
            fixed("\tround: 1\n\tx:\n\t\t- a\n").as_deref(),
            Some("  round: 1\n  x:\n    - a\n")
        );
        assert_eq!(
            fixed("    round: 1\n\tx: 2\n").as_deref(),
            Some("    round: 1\n    x: 2\n")
        );
    }

    #[test]
    fn a_tab_that_may_mean_several_things_stays() {
        // It could be one or two levels below `x`, or text of a block.
        assert_eq!(fixed("  x:\n    a:\n\t\tb: 1\n"), None);
        assert_eq!(fixed("  x: |\n    a\n\tb\n"), None);
    }

    #[test]
    fn tabs_stay_where_it_would_take_long_to_try_them() {
        let lines = |count: usize, text: usize| {
            let tabbed: String = (0..count).map(|n| format!("\tx{n}: 1\n")).collect();
            fixed(&format!("  text: {}\n{tabbed}", "x".repeat(text)))
        };
        let (few, many, long) = (lines(1, 9_000), lines(200, 9_000), lines(1, 90_000));
        let values = fixed(&format!("  x: [{}]\n\tz: 1\n", "{},".repeat(9_000)));
        assert_eq!(values, None);
        assert_eq!(
            [few.is_some(), many.is_some(), long.is_some()],
            [true, false, false]
        );
    }

    #[test]
    fn a_tab_in_a_text_stays_beside_one_that_is_replaced() {
        let body = fixed("\tround: 1\n  x: |\n    a\n    \tb\n");
        assert_eq!(
            body.as_deref(),
            Some("  round: 1\n  x: |\n    a\n    \tb\n")
        );
    }
}
