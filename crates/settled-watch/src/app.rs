//! The state of the screen: the model, the chosen row, the filter, and the effect of each key.

use chrono::{DateTime, Utc};
use cockpit::needs::{Need, WhoseMove};
use cockpit::{Overview, ReviewDetail};
use inspect::status::row::ReviewRow;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::ink::Theme;

/// The view that fills the screen beside the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pane {
    /// The chosen review at a glance.
    Summary,
    /// Its threads, with the words of both agents.
    Threads,
    /// Everything that happened to it.
    Timeline,
    /// The agents and their commands.
    Agents,
    /// The outcomes of reviews over time.
    History,
    /// Problems for an operator, refused messages to correct, and handoffs.
    Problems,
    /// The keys.
    Help,
}

impl Pane {
    /// All panes, in the order of their keys.
    pub const ALL: [Self; 7] = [
        Self::Summary,
        Self::Threads,
        Self::Timeline,
        Self::Agents,
        Self::History,
        Self::Problems,
        Self::Help,
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Summary => "review",
            Self::Threads => "threads",
            Self::Timeline => "timeline",
            Self::Agents => "agents",
            Self::History => "history",
            Self::Problems => "problems",
            Self::Help => "keys",
        }
    }
}

/// The rows to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All.
    All,
    /// Those that the viewing agent has to act on; without an agent, those that wait for a person.
    Mine,
    /// Those that are stuck: they wait for a person or an operator, or are overdue.
    Stuck,
}

impl Filter {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Mine => "mine",
            Self::Stuck => "stuck",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::All => Self::Mine,
            Self::Mine => Self::Stuck,
            Self::Stuck => Self::All,
        }
    }
}

/// A row of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListRow {
    /// A need, by its index in the model.
    Need(usize),
    /// A review, by its index in the model.
    Review(usize),
}

/// A key's request to the code that owns the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing but a new frame.
    Nothing,
    /// End the program.
    Quit,
    /// Copy a text.
    Copy(String),
    /// Read the chosen review.
    Read,
}

/// The screen's state.
#[derive(Debug)]
pub struct App {
    /// The mailroom.
    pub overview: Overview,
    /// The chosen review, if the row has one.
    pub detail: Option<ReviewDetail>,
    /// The time from which ages and the time left are computed.
    pub now: DateTime<Utc>,
    /// The colours.
    pub theme: Theme,
    /// The agent that watches.
    pub agent: Option<String>,
    /// The view that fills the screen beside the list.
    pub pane: Pane,
    /// True if the pane has the focus and, where there is no room for both, the screen.
    pub is_in_pane: bool,
    /// The rows to list.
    pub filter: Filter,
    /// The text that rows have to contain.
    pub search: String,
    /// True while the search is being typed.
    pub is_typing: bool,
    /// The last action or the last error.
    pub notice: Option<String>,
    /// The reason why the ledger cannot be read; `None` while it can.
    pub trouble: Option<String>,
    /// The line to which the pane is scrolled.
    pub scroll: usize,
    rows: Vec<ListRow>,
    chosen: usize,
}

impl App {
    /// Makes the screen of a mailroom, with the first row chosen.
    pub fn new(overview: Overview, now: DateTime<Utc>, theme: Theme) -> Self {
        let mut app = Self {
            overview,
            detail: None,
            now,
            theme,
            agent: None,
            pane: Pane::Summary,
            is_in_pane: false,
            filter: Filter::All,
            search: String::new(),
            is_typing: false,
            notice: None,
            trouble: None,
            scroll: 0,
            rows: Vec::new(),
            chosen: 0,
        };
        app.list();
        app
    }

    /// Shows a newer model; keeps the chosen row if it is still there.
    pub fn show(&mut self, overview: Overview, now: DateTime<Utc>) {
        let before = self.rows.get(self.chosen).copied();
        let was_need = matches!(before, Some(ListRow::Need(_)));
        let (review, what) = (
            self.chosen_review().map(str::to_owned),
            self.chosen_need().map(|need| need.missing.clone()),
        );
        self.overview = overview;
        self.now = now;
        self.list();
        let is_same = |row: &ListRow| match row {
            ListRow::Need(at) => {
                let need = &self.overview.needs[*at];
                was_need && need.review == review && Some(&need.missing) == what.as_ref()
            }
            ListRow::Review(at) => {
                !was_need && Some(&self.overview.status.reviews[*at].review) == review.as_ref()
            }
        };
        // A review may have several needs: if the chosen one is met, choose another of them, or the review's own row.
        let of_review =
            |row: &ListRow| review.is_some() && self.review_of(*row) == review.as_deref();
        let place = self.rows.iter().position(is_same);
        let place = place.or_else(|| self.rows.iter().position(of_review));
        self.chosen = place.unwrap_or_else(|| self.chosen.min(self.rows.len().saturating_sub(1)));
    }

    /// Chooses the first row about a review.
    pub fn choose(&mut self, review: &str) {
        let place = self
            .rows
            .iter()
            .position(|row| self.review_of(*row) == Some(review));
        self.chosen = place.unwrap_or(self.chosen);
    }

    /// Returns the listed rows.
    pub fn rows(&self) -> &[ListRow] {
        &self.rows
    }

    /// Returns the index of the chosen row.
    pub fn chosen(&self) -> usize {
        self.chosen
    }

    /// Returns the review of the chosen row.
    pub fn chosen_review(&self) -> Option<&str> {
        self.review_of(*self.rows.get(self.chosen)?)
    }

    /// Returns the need of the chosen row or of its review.
    pub fn chosen_need(&self) -> Option<&Need> {
        match self.rows.get(self.chosen)? {
            ListRow::Need(at) => self.overview.needs.get(*at),
            ListRow::Review(at) => {
                let review = &self.overview.status.reviews.get(*at)?.review;
                let mut needs = self.overview.needs.iter();
                needs.find(|need| need.review.as_ref() == Some(review))
            }
        }
    }

    fn review_of(&self, row: ListRow) -> Option<&str> {
        match row {
            ListRow::Need(at) => self.overview.needs.get(at)?.review.as_deref(),
            ListRow::Review(at) => Some(&self.overview.status.reviews.get(at)?.review),
        }
    }

    /// Lists the rows that pass the filter and the search.
    fn list(&mut self) {
        let search = self.search.to_lowercase();
        let has_words = |texts: &[&str]| {
            search.is_empty()
                || texts
                    .iter()
                    .any(|text| text.to_lowercase().contains(&search))
        };
        let needs = self.overview.needs.iter().enumerate();
        let needs = needs.filter(|(_, need)| {
            let review = need.review.as_deref().unwrap_or_default();
            self.admits_need(need) && has_words(&[review, need.mover.as_str(), &need.missing])
        });
        let reviews = self.overview.status.reviews.iter().enumerate();
        let reviews = reviews.filter(|(_, row)| {
            let mover = row.mover.as_deref().unwrap_or_default();
            self.admits_review(row) && has_words(&[&row.review, mover, row.phase])
        });
        self.rows = needs
            .map(|(at, _)| ListRow::Need(at))
            .chain(reviews.map(|(at, _)| ListRow::Review(at)))
            .collect();
        self.chosen = self.chosen.min(self.rows.len().saturating_sub(1));
    }

    fn admits_need(&self, need: &Need) -> bool {
        match (self.filter, &self.agent) {
            (Filter::All, _) => true,
            (Filter::Mine, Some(agent)) => need.mover.as_str() == agent,
            (Filter::Mine, None) => need.part == WhoseMove::Person,
            (Filter::Stuck, _) => {
                matches!(need.part, WhoseMove::Operator | WhoseMove::Person)
                    || need.due_at.is_some_and(|due| due < self.now)
            }
        }
    }

    fn admits_review(&self, row: &ReviewRow) -> bool {
        match (self.filter, &self.agent) {
            (Filter::All, _) => true,
            (Filter::Mine, Some(agent)) => row.author == *agent || row.reviewer == *agent,
            (Filter::Mine, None) => row.mover.as_deref() == Some("person"),
            (Filter::Stuck, _) => {
                row.mover.as_deref() == Some("person")
                    || row.due_at.is_some_and(|due| due < self.now)
            }
        }
    }

    /// Handles a key.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "keys that mean nothing here are many, and terminals add more"
    )]
    pub fn press(&mut self, key: KeyEvent) -> Asked {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Asked::Quit;
        }
        self.notice = None;
        if self.is_typing {
            return self.typed(key.code);
        }
        match key.code {
            KeyCode::Char('q') => return Asked::Quit,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('f') => {
                self.filter = self.filter.next();
                return self.listed_anew();
            }
            KeyCode::Char('y') => return self.copy(),
            KeyCode::Char('?') => self.open(Pane::Help),
            KeyCode::Char(digit @ '1'..='7') => {
                let at = usize::try_from(digit.to_digit(10).unwrap_or(1)).unwrap_or(1);
                self.open(Pane::ALL[at - 1]);
            }
            KeyCode::Tab => {
                let at = Pane::ALL.iter().position(|pane| *pane == self.pane);
                self.open(Pane::ALL[(at.unwrap_or(0) + 1) % Pane::ALL.len()]);
            }
            KeyCode::Enter | KeyCode::Char('l') | KeyCode::Right => self.is_in_pane = true,
            KeyCode::Esc | KeyCode::Char('h') | KeyCode::Left | KeyCode::Backspace => {
                return self.back();
            }
            KeyCode::Down | KeyCode::Char('j') => return self.go(1),
            KeyCode::Up | KeyCode::Char('k') => return self.go(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => return self.go(10),
            KeyCode::PageUp => return self.go(-10),
            KeyCode::Home | KeyCode::Char('g') => return self.go(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => return self.go(isize::MAX),
            _ => {}
        }
        Asked::Nothing
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "keys that mean nothing here are many, and terminals add more"
    )]
    fn typed(&mut self, code: KeyCode) -> Asked {
        match code {
            KeyCode::Esc => {
                self.search.clear();
                self.is_typing = false;
            }
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Backspace => {
                self.search.pop();
            }
            KeyCode::Char(letter) => self.search.push(letter),
            _ => return Asked::Nothing,
        }
        self.listed_anew()
    }

    fn listed_anew(&mut self) -> Asked {
        self.chosen = 0;
        self.scroll = 0;
        self.list();
        Asked::Read
    }

    fn open(&mut self, pane: Pane) {
        self.pane = pane;
        self.scroll = 0;
        self.is_in_pane = true;
    }

    /// Leaves the pane, else the search, else the filter.
    fn back(&mut self) -> Asked {
        self.scroll = 0;
        if self.is_in_pane {
            self.is_in_pane = false;
            self.pane = Pane::Summary;
            return Asked::Nothing;
        }
        if !self.search.is_empty() {
            self.search.clear();
        } else {
            self.filter = Filter::All;
        }
        self.listed_anew()
    }

    /// Scrolls the focused pane, or moves through the list.
    fn go(&mut self, by: isize) -> Asked {
        if self.is_in_pane {
            self.scroll = self.scroll.saturating_add_signed(by);
            return Asked::Nothing;
        }
        let last = self.rows.len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add_signed(by).min(last);
        self.scroll = 0;
        Asked::Read
    }

    fn copy(&mut self) -> Asked {
        match self.chosen_need().and_then(|need| need.fix.as_ref()) {
            Some(fix) => {
                let run = fix.run.clone();
                self.notice = Some(format!("copied: {run}"));
                Asked::Copy(run)
            }
            None => {
                self.notice = Some("nothing to copy: this review waits for nobody".to_owned());
                Asked::Nothing
            }
        }
    }
}
