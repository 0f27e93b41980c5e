//! Bars as SVG, drawn by the server, each labelled in words.

use maud::{Markup, html};

/// The width of a plot, in its own units.
const WIDTH: u64 = 600;

/// The height of a bar and of its row.
const BAR: u64 = 16;
const ROW: u64 = 26;

/// The left edge of the bars; the names are to the left of it.
const LEFT: u64 = 200;

/// The room for the number after the longest bar.
const RIGHT: u64 = 80;

/// Draws a horizontal bar for each row, and the rows as a table for people who cannot see the bars.
pub(super) fn bars(title: &str, what: &str, rows: &[(String, u64)]) -> Markup {
    let most = rows
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(0)
        .max(1);
    let height = ROW * rows.len() as u64 + 4;
    html! {
        figure {
            figcaption { strong { (title) } ". " (what) }
            @if rows.is_empty() { p { "Nothing yet." } } @else {
                svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(format!("{title}. {what}")) {
                    @for (n, (name, count)) in rows.iter().enumerate() {
                        @let top = ROW * n as u64 + 4;
                        text x=(LEFT - 8) y=(top + 13) text-anchor="end" { (name) }
                        rect x=(LEFT) y=(top) height=(BAR) width=((WIDTH - LEFT - RIGHT) * count / most) {}
                        text x=(LEFT + 6 + (WIDTH - LEFT - RIGHT) * count / most) y=(top + 13) { (count) }
                    }
                }
            }
        }
    }
}
