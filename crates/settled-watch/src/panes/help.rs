//! The keys, and the meaning of the shapes.

use crate::ink::{Ink, Pieces, wrapped};

pub(crate) fn lines(width: usize) -> Vec<Pieces> {
    const KEYS: [(&str, &str); 11] = [
        ("↑ ↓, j k", "choose a row; in a pane, scroll"),
        ("PgUp PgDn, g G", "ten rows, the first, the last"),
        ("⏎, →", "into the pane; on a narrow screen it fills it"),
        ("Esc, ←", "back to the list; then out of search and filter"),
        (
            "1 to 7, Tab",
            "the panes: review, threads, timeline, agents, history, problems, keys",
        ),
        (
            "y",
            "copy the next command (by the terminal, also over ssh)",
        ),
        ("/", "search in reviews, movers and what is missing"),
        (
            "f",
            "list all, mine (of --agent; without one, a person's), stuck",
        ),
        ("q, Ctrl-C", "quit"),
        (
            "■ ▲ ● ◆",
            "the operator, a person, an author, a reviewer must move",
        ),
        ("✓ ✗ …", "met or done, broken or blocking, pending"),
    ];
    let lines = |(key, what): (&str, &str)| -> Vec<Pieces> {
        let lines = wrapped(what, width.saturating_sub(19), 4)
            .into_iter()
            .enumerate();
        let line = |(n, line)| {
            let key = if n == 0 { key } else { "" };
            vec![(Ink::Head, format!("   {key:<16}")), (Ink::Plain, line)]
        };
        lines.map(line).collect()
    };
    KEYS.into_iter().flat_map(lines).collect()
}
