//! One frame: the mailroom's line, the list, the pane, the next step, and the keys.

use cockpit::words::with_short_commits;
use message_schema::line::counted;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use crate::app::{App, Filter, Pane};
use crate::ink::{Ink, Pieces, shown, wrapped};
use crate::panes::{agents, detail, help, history, list, problems};

/// The smallest width and height that hold both the list and a pane.
const BOTH_WIDTH: u16 = 78;
const BOTH_HEIGHT: u16 = 24;

/// Draws a frame.
pub fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let area = frame.area();
    let canvas = &mut Canvas {
        buffer: frame.buffer_mut(),
        area,
        app,
    };
    canvas.whole();
}

struct Canvas<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    app: &'a mut App,
}

impl Canvas<'_> {
    fn whole(&mut self) {
        let Rect { width, height, .. } = self.area;
        let head = head(self.app, width.into());
        let has_both = width >= BOTH_WIDTH && height >= BOTH_HEIGHT;
        let mut next = next(self.app, width.into());
        if !has_both && !self.app.is_in_pane {
            // There is no pane that shows it in full.
            let missing = missing(self.app, width.into());
            next.splice(1..1, missing);
        }
        let keys = keys(self.app, width.into());
        let below = next.len() + keys.len();
        let rows = usize::from(height);
        self.lines(0, head.clone(), rows);
        let body = (head.len(), rows.saturating_sub(below).max(head.len()));
        match (has_both, self.app.is_in_pane) {
            (true, _) => {
                let room = body.1 - body.0;
                let wanted = list::height(self.app, width.into());
                let upper = wanted.clamp(5, (room * 2 / 5).max(5)).min(room);
                self.list(body.0, upper);
                self.pane(body.0 + upper, room - upper);
            }
            (false, true) => self.pane(body.0, body.1 - body.0),
            (false, false) => self.list(body.0, body.1 - body.0),
        }
        let end = rows.saturating_sub(below);
        self.lines(end, next, rows);
        self.lines(rows.saturating_sub(keys.len()), keys, rows);
    }

    fn list(&mut self, top: usize, room: usize) {
        let (lines, chosen) = list::lines(self.app, self.area.width.into(), room);
        self.lines(top, lines, top + room);
        for line in chosen.start.min(room)..chosen.end.min(room) {
            let row = Rect {
                y: u16::try_from(top + line).unwrap_or(u16::MAX),
                height: 1,
                ..self.area
            };
            let style = ratatui::style::Style::new().add_modifier(Modifier::REVERSED);
            self.buffer.set_style(row.intersection(self.area), style);
            if line == chosen.start {
                self.buffer.set_string(row.x, row.y, "▸", style);
            }
        }
    }

    fn pane(&mut self, top: usize, room: usize) {
        let width = usize::from(self.area.width);
        self.lines(top, vec![tabs(self.app, width)], top + room);
        let app = &*self.app;
        let lines = match app.pane {
            Pane::Summary => detail::summary(app, width),
            Pane::Threads => detail::threads(app, width),
            Pane::Timeline => detail::timeline(app, width),
            Pane::Agents => agents::lines(app, width),
            Pane::History => history::lines(app, width),
            Pane::Problems => problems::lines(app, width),
            Pane::Help => help::lines(width),
        };
        let room = room.saturating_sub(1);
        let last = lines.len().saturating_sub(room);
        self.app.scroll = self.app.scroll.min(last);
        let hidden = last - self.app.scroll;
        let mut seen: Vec<Pieces> = lines.into_iter().skip(self.app.scroll).take(room).collect();
        if hidden > 0 && room > 1 {
            seen.truncate(room - 1);
            let how = if self.app.is_in_pane {
                "↓"
            } else {
                "⏎ then ↓"
            };
            let more = format!(" … {} more lines ({how})", hidden + 1);
            seen.push(vec![(Ink::Aside, more)]);
        }
        self.lines(top + 1, seen, top + 1 + room);
    }

    /// Puts lines below each other, above line `end`.
    fn lines(&mut self, top: usize, lines: Vec<Pieces>, end: usize) {
        let end = end.min(self.area.height.into());
        for (n, pieces) in lines.into_iter().enumerate() {
            let Some(y) = u16::try_from(top + n).ok().filter(|_| top + n < end) else {
                return;
            };
            let line = self.app.theme.line(pieces);
            self.buffer
                .set_line(self.area.x, self.area.y + y, &line, self.area.width);
        }
    }
}

/// The mailroom in one or two lines, with what is wrong with it.
fn head(app: &App, width: usize) -> Vec<Pieces> {
    let overview = &app.overview;
    let reviews = overview.status.reviews.len();
    let needs = overview.needs.len();
    let serving = match overview.status.serving {
        Some(true) => (Ink::Well, "✓ daemon serves".to_owned()),
        Some(false) => (Ink::Alarm, "✗ NO DAEMON SERVES".to_owned()),
        None => (Ink::Care, "? daemon cannot be seen".to_owned()),
    };
    let mut line = vec![
        (
            Ink::Head,
            format!(" {}", screen::cut(&shown(&overview.mailroom), 24)),
        ),
        (
            Ink::Plain,
            format!(
                "  {}, {} for somebody  ",
                counted(reviews, "review", "reviews"),
                counted(needs, "waits", "wait")
            ),
        ),
        serving,
    ];
    let used: usize = line.iter().map(|(_, text)| screen::cells(text)).sum();
    let record = format!("  record {} ✓ chained", overview.head.seq);
    if used + screen::cells(&record) <= width {
        line.push((Ink::Aside, record));
    }
    if width >= 120 {
        line.push((
            Ink::Aside,
            format!("  {}", app.now.format("%Y-%m-%d %H:%M:%S UTC")),
        ));
    }
    let mut lines = vec![line];
    let is_narrowed = app.filter != Filter::All || !app.search.is_empty() || app.is_typing;
    if is_narrowed {
        let cursor = if app.is_typing { "▏" } else { "" };
        let mut text = format!(" showing {}", app.filter.name());
        if !app.search.is_empty() || app.is_typing {
            text += &format!(", search: {}{cursor}", shown(&app.search));
        }
        text += if app.is_typing {
            "   ⏎ keeps, Esc clears"
        } else {
            "   Esc shows all"
        };
        lines.push(vec![(Ink::Care, text)]);
    }
    if let Some(trouble) = &app.trouble {
        lines.push(vec![(
            Ink::Alarm,
            format!(
                " ✗ {}",
                screen::cut(&shown(trouble), width.saturating_sub(3))
            ),
        )]);
    }
    lines
}

/// The lines that tell in full what the chosen row waits for.
fn missing(app: &App, width: usize) -> Vec<Pieces> {
    let missing = app.chosen_need().map_or("", |need| &need.missing);
    let lines = wrapped(&with_short_commits(missing), width.saturating_sub(8), 4);
    let line = |(n, line): (usize, String)| {
        let head = if n == 0 { " wait  " } else { "       " };
        vec![(Ink::Head, head.to_owned()), (Ink::Care, line)]
    };
    lines.into_iter().enumerate().map(line).collect()
}

/// The lines with the next actor and command for the chosen row. The command is never cut, so that it can be copied.
fn next(app: &App, width: usize) -> Vec<Pieces> {
    let rule = vec![(Ink::Aside, "─".repeat(width))];
    let Some(need) = app.chosen_need() else {
        return vec![
            rule,
            vec![(
                Ink::Plain,
                " next  nobody has to do anything here".to_owned(),
            )],
        ];
    };
    let Some(fix) = &need.fix else {
        return vec![rule];
    };
    let fill = if fix.fill.is_empty() {
        String::new()
    } else {
        format!("  (fill in {})", fix.fill.join(", "))
    };
    let who = format!(" next  {} runs", shown(fix.actor.as_str()));
    let mut lines = vec![rule];
    let command = wrapped(&fix.run, width.saturating_sub(8), 4);
    let effect = wrapped(
        &format!("{}{fill}", fix.effect),
        width.saturating_sub(screen::cells(&who) + 4),
        1,
    );
    lines.push(vec![
        (Ink::Head, who),
        (Ink::Aside, format!("   {}", effect.concat())),
    ]);
    lines.extend(
        command
            .into_iter()
            .map(|part| vec![(Ink::Plain, format!("       {part}"))]),
    );
    lines
}

/// The keys that have an effect here, or the last action.
fn keys(app: &App, width: usize) -> Vec<Pieces> {
    if let Some(notice) = &app.notice {
        return vec![vec![(
            Ink::Head,
            format!(" {}", screen::cut(&shown(notice), width.saturating_sub(2))),
        )]];
    }
    let all: &[(&str, &str)] = if app.is_in_pane {
        &[
            ("↑↓", "scroll"),
            ("Esc", "list"),
            ("Tab", "pane"),
            ("y", "copy"),
            ("q", "quit"),
            ("?", "keys"),
            ("/", "search"),
            ("f", "filter"),
        ]
    } else {
        &[
            ("↑↓", "choose"),
            ("⏎", "open"),
            ("y", "copy"),
            ("/", "search"),
            ("f", "filter"),
            ("q", "quit"),
            ("?", "keys"),
            ("1-7", "panes"),
        ]
    };
    let mut line: Pieces = Vec::new();
    let mut cells = 0;
    for (key, what) in all {
        let room = screen::cells(key) + screen::cells(what) + 4;
        // The last one needs no blanks after it.
        if cells + room - 2 > width {
            break;
        }
        cells += room;
        line.push((Ink::Head, format!(" {key} ")));
        line.push((Ink::Aside, format!("{what}  ")));
    }
    vec![line]
}

/// The names of the panes, with the shown one marked.
fn tabs(app: &App, width: usize) -> Pieces {
    let mut line: Pieces = vec![(Ink::Aside, "──".to_owned())];
    let mut cells = 2;
    for (n, pane) in Pane::ALL.into_iter().enumerate() {
        let is_shown = pane == app.pane;
        let name = if is_shown {
            format!("[{} {}]", n + 1, pane.name())
        } else {
            format!(" {} {} ", n + 1, pane.name())
        };
        if cells + screen::cells(&name) > width {
            break;
        }
        cells += screen::cells(&name);
        line.push((if is_shown { Ink::Head } else { Ink::Aside }, name));
    }
    line.push((Ink::Aside, "─".repeat(width.saturating_sub(cells))));
    line
}
