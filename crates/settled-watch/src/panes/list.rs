//! The list: who must move, and below it all reviews.

use std::ops::Range;

use cockpit::needs::{Need, WhoseMove};
use cockpit::words::with_short_commits;
use inspect::status::row::ReviewRow;

use super::time::left;
use crate::app::{App, ListRow};
use crate::ink::{Ink, Pieces, bar, padded, shown};

/// The width from which a need is one line. On less, the missing thing has its own line, where it can be read to the
/// end.
const ONE_LINE: usize = 150;

/// The width from which a review's line shows its threads and its time.
const WIDE: usize = 110;

/// The shape of a role.
fn part(part: WhoseMove) -> (Ink, &'static str) {
    match part {
        WhoseMove::Operator => (Ink::Alarm, "■"),
        WhoseMove::Person => (Ink::Alarm, "▲"),
        WhoseMove::Author => (Ink::Care, "●"),
        WhoseMove::Reviewer => (Ink::Care, "◆"),
        WhoseMove::Sender => (Ink::Care, "✗"),
    }
}

/// The shape of a phase.
pub(super) fn shape(row: &ReviewRow) -> (Ink, &'static str) {
    match (row.phase, row.stale) {
        ("approved", Some(true)) => (Ink::Care, "≠"),
        ("approved", _) => (Ink::Well, "✓"),
        ("escalated", _) => (Ink::Alarm, "▲"),
        ("closed", _) => (Ink::Aside, "–"),
        ("reviewing", _) => (Ink::Plain, "◆"),
        _ => (Ink::Plain, "●"),
    }
}

/// The number of lines that all rows take, with their headings.
pub(crate) fn height(app: &App, width: usize) -> usize {
    let rows: usize = app.rows().iter().map(|row| lines_of(*row, width)).sum();
    rows + headings(app)
}

fn headings(app: &App) -> usize {
    1 + usize::from(
        app.rows()
            .iter()
            .any(|row| matches!(row, ListRow::Review(_))),
    )
}

fn lines_of(row: ListRow, width: usize) -> usize {
    match row {
        ListRow::Need(_) if width < ONE_LINE => 2,
        ListRow::Need(_) | ListRow::Review(_) => 1,
    }
}

/// As many lines as fit into `room`, the chosen row among them; and the lines which that row takes.
pub(crate) fn lines(app: &App, width: usize, room: usize) -> (Vec<Pieces>, Range<usize>) {
    let rows = app.rows();
    let first = first_row(app, width, room);
    let mut lines: Vec<Pieces> = Vec::new();
    let mut chosen = 0..0;
    let mut is_above_reviews = true;
    if rows
        .first()
        .is_none_or(|row| matches!(row, ListRow::Review(_)))
    {
        let nobody = if rows.is_empty() && !app.overview.status.reviews.is_empty() {
            " nothing matches"
        } else {
            " NEEDS SOMEBODY  nothing: no review waits"
        };
        lines.push(vec![(Ink::Head, nobody.to_owned())]);
    } else {
        lines.push(vec![(Ink::Head, " NEEDS SOMEBODY".to_owned())]);
    }
    for (at, row) in rows.iter().enumerate().skip(first) {
        if lines.len() >= room {
            break;
        }
        let begin = match *row {
            ListRow::Need(need) => {
                let begin = lines.len();
                lines.extend(need_lines(&app.overview.needs[need], app, width));
                begin
            }
            ListRow::Review(review) => {
                if std::mem::take(&mut is_above_reviews) {
                    lines.push(vec![(Ink::Head, " ALL REVIEWS".to_owned())]);
                }
                lines.push(review_line(
                    &app.overview.status.reviews[review],
                    app,
                    width,
                ));
                lines.len() - 1
            }
        };
        if at == app.chosen() {
            chosen = begin..lines.len();
        }
    }
    if rows.is_empty() && app.overview.status.reviews.is_empty() {
        lines.push(vec![(
            Ink::Plain,
            " no review yet: an author asks with `settled send review_request`".to_owned(),
        )]);
    }
    lines.truncate(room);
    (lines, chosen)
}

/// The first row to draw. If the list is longer than the screen, the chosen row is in the middle.
fn first_row(app: &App, width: usize, room: usize) -> usize {
    let rows = app.rows();
    let room = room.saturating_sub(headings(app)).max(1);
    let heights = |range: Range<usize>| -> usize {
        rows[range].iter().map(|row| lines_of(*row, width)).sum()
    };
    let chosen = app.chosen().min(rows.len());
    if heights(0..rows.len().min(chosen + 1)) <= room {
        return 0;
    }
    let mut first = chosen;
    let mut used = rows.get(chosen).map_or(0, |row| lines_of(*row, width));
    while first > 0 {
        used += lines_of(rows[first - 1], width);
        if used > room {
            break;
        }
        first -= 1;
    }
    first
}

fn need_lines(need: &Need, app: &App, width: usize) -> Vec<Pieces> {
    let (ink, shape) = part(need.part);
    let mover = shown(&need.part.of_mover(&need.mover));
    let (time_ink, time) = left(need.due_at, need.wait_s, need.since, app.now);
    let clock = match (need.due_at, need.wait_s) {
        (Some(due), Some(whole)) => {
            let seconds = u64::try_from((due - app.now).num_seconds()).unwrap_or(0);
            format!("{} ", bar(seconds, whole, 6))
        }
        (_, _) => String::new(),
    };
    let time = format!("{clock}{time}");
    let review = need.review.as_deref().map_or_else(String::new, shown);
    let missing = shown(&with_short_commits(&need.missing));
    if width < ONE_LINE {
        let time_width = screen::cells(&time);
        let mover_width = (width / 3).clamp(12, 26);
        let review_width = width.saturating_sub(mover_width + time_width + 6);
        return vec![
            vec![
                (ink, format!(" {shape} ")),
                (
                    Ink::Head,
                    padded(&screen::shorten(&mover, mover_width), mover_width),
                ),
                (
                    Ink::Plain,
                    format!(
                        " {} ",
                        padded(&screen::shorten(&review, review_width), review_width)
                    ),
                ),
                (time_ink, time),
            ],
            vec![(
                Ink::Plain,
                format!("     {}", screen::cut(&missing, width.saturating_sub(6))),
            )],
        ];
    }
    let (mover_width, review_width, time_width) = (20, 26, 24);
    let missing_width = width.saturating_sub(mover_width + review_width + time_width + 7);
    vec![vec![
        (ink, format!(" {shape} ")),
        (
            Ink::Head,
            padded(&screen::shorten(&mover, mover_width), mover_width),
        ),
        (
            Ink::Plain,
            format!(
                " {} ",
                padded(&screen::shorten(&review, review_width), review_width)
            ),
        ),
        (Ink::Plain, padded(&missing, missing_width)),
        (time_ink, format!(" {}", screen::cut(&time, time_width))),
    ]]
}

fn review_line(row: &ReviewRow, app: &App, width: usize) -> Pieces {
    let (ink, shape) = shape(row);
    let phase = if row.stale == Some(true) {
        format!("{} (stale)", row.phase)
    } else {
        row.phase.to_owned()
    };
    let round = format!("round {} of {}", row.round_of_generation, row.rounds);
    let need = app.overview.need_of(&row.review);
    let mover = need
        .map(|need| need.mover.as_str())
        .or(row.mover.as_deref());
    let mover = match mover {
        Some(mover) => format!("{} moves", shown(mover)),
        None => "nobody moves".to_owned(),
    };
    let threads = match row.open_threads {
        0 => String::new(),
        1 => "1 thread open".to_owned(),
        more => format!("{more} threads open"),
    };
    let review_width = if width >= WIDE {
        34
    } else {
        (width * 2 / 5).max(18)
    };
    let mut line = vec![
        (ink, format!(" {shape} ")),
        (
            Ink::Plain,
            padded(
                &screen::shorten(&shown(&row.review), review_width),
                review_width,
            ),
        ),
        (ink, format!(" {}", padded(&phase, 16.min(width / 5)))),
    ];
    let mut rest = vec![
        format!("{round:<12}"),
        format!("{:<18}", screen::cut(&mover, 18)),
    ];
    if width >= WIDE {
        rest.push(format!("{threads:<16}"));
        rest.push(left(row.due_at, row.wait_s, Some(row.since), app.now).1);
    }
    let room = width.saturating_sub(review_width + 4 + 16.min(width / 5));
    line.push((
        Ink::Plain,
        format!(" {}", screen::cut(&rest.join(" "), room.saturating_sub(1))),
    ));
    line
}
