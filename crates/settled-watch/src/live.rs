//! Follows a workspace on a terminal: polls the ledger, draws, and handles keys.

use std::error::Error;
use std::io::{Write as _, stdout};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cockpit::{Follower, Overview};
use message_schema::id::{AgentName, PrNumber};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use review::Which;
use workspace::{clock, shell};

use crate::app::{App, Asked};
use crate::clipboard::copy;
use crate::draw::draw;
use crate::ink::Theme;
use crate::terminal::Taken;

/// The time to wait for a key before the next poll of the ledger.
const LOOK: Duration = Duration::from_millis(100);

/// The pause after a poll, as a multiple of the time it took: even a large mailroom takes at most a fifth of a core.
const REST: u32 = 4;

/// The workspace to show, and the agent that watches.
#[derive(Clone, Debug)]
pub struct Options {
    /// The workspace.
    pub root: PathBuf,
    /// The workspace as commands have to name it, unless the environment names it.
    pub named_root: Option<PathBuf>,
    /// The agent that watches.
    pub agent: Option<AgentName>,
    /// The pull request to begin with.
    pub review: Option<PrNumber>,
}

/// A workspace and its follower.
struct Followed<'a> {
    follower: Follower,
    options: &'a Options,
}

/// Shows the workspace until the user quits.
pub fn follow(options: &Options) -> Result<(), Box<dyn Error>> {
    let mut followed = Followed {
        follower: Follower::open(&options.root)?,
        options,
    };
    let mut app = App::new(followed.overview(), clock::now(), Theme::of_environment());
    app.agent = options.agent.as_ref().map(ToString::to_string);
    followed.begin(&mut app);
    let mut taken = Taken::take()?;
    let (mut looked, mut took) = (Instant::now(), Duration::ZERO);
    let mut is_changed = true;
    while !taken.is_over() {
        if is_changed {
            taken.terminal.draw(|frame| draw(frame, &mut app))?;
        }
        // A signal does not end the wait, so the loop's condition sees it after at most `LOOK`.
        is_changed = if event::poll(LOOK)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    match app.press(key) {
                        Asked::Quit => return Ok(()),
                        Asked::Copy(text) => {
                            let mut out = stdout().lock();
                            out.write_all(copy(&text).as_bytes())?;
                            out.flush()?;
                        }
                        Asked::Read => followed.read(&mut app),
                        Asked::Nothing => {}
                    }
                    true
                }
                Event::Resize(..) => true,
                Event::Key(_)
                | Event::FocusGained
                | Event::FocusLost
                | Event::Mouse(_)
                | Event::Paste(_) => false,
            }
        } else {
            false
        };
        if looked.elapsed() >= pause(took) {
            let begun = Instant::now();
            // Everything besides the ledger is read once a second: the clock, outboxes, runs, the daemon.
            let is_tick = app.now.timestamp() != clock::now().timestamp();
            is_changed |= if is_tick {
                followed.tick(&mut app)
            } else {
                followed.poll(&mut app)
            };
            (took, looked) = (begun.elapsed(), Instant::now());
        }
    }
    Ok(())
}

/// Returns the time between a poll that took this long and the next.
fn pause(took: Duration) -> Duration {
    LOOK.max(took * REST)
}

impl Followed<'_> {
    fn spell(&self, agent: Option<&AgentName>, words: &str) -> String {
        shell::settled(words, self.options.named_root.as_deref(), agent)
    }

    fn overview(&self) -> Overview {
        let spell = |agent: Option<&_>, words: &str| self.spell(agent, words);
        self.follower.overview(clock::now(), &spell)
    }

    /// Chooses the requested review, and reads the chosen one.
    fn begin(&self, app: &mut App) {
        let which = self.options.review.clone().map(|pr| Which {
            pr,
            repo: None,
            reviewer: None,
        });
        let keys = which.map_or_else(Vec::new, |which| self.follower.keys_of(&which));
        if let Some(key) = keys.first() {
            app.choose(&key.to_string());
        }
        self.read(app);
    }

    fn read(&self, app: &mut App) {
        let spell = |agent: Option<&_>, words: &str| self.spell(agent, words);
        let key = app
            .chosen_review()
            .and_then(|name| self.follower.key_of(name));
        app.detail = key.and_then(|key| self.follower.review(key, clock::now(), &spell));
    }

    /// Polls the workspace, and shows it if it has changed. True if the screen may have changed.
    fn poll(&mut self, app: &mut App) -> bool {
        match self.refresh(app) {
            Some(false) => return false,
            Some(true) => self.show(app),
            None => {}
        }
        true
    }

    /// Polls the workspace, and shows it even without a new record. The screen always changes.
    fn tick(&mut self, app: &mut App) -> bool {
        if self.refresh(app).is_some() {
            self.show(app);
        }
        true
    }

    /// Reads the workspace again and returns whether it has changed. `None` if it cannot be read: the screen says so.
    fn refresh(&mut self, app: &mut App) -> Option<bool> {
        match self.follower.refresh() {
            Ok(has_changed) => Some(has_changed | app.trouble.take().is_some()),
            Err(error) => {
                app.trouble = Some(format!("the ledger cannot be read: {error}"));
                None
            }
        }
    }

    fn show(&self, app: &mut App) {
        app.show(self.overview(), clock::now());
        self.read(app);
    }
}

#[cfg(test)]
#[path = "../../../tests/recorded_workspace.rs"]
#[expect(
    dead_code,
    reason = "the tests of other rooms also compare texts with kept ones"
)]
mod recorded_workspace;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn app(followed: &Followed<'_>) -> App {
        App::new(
            followed.overview(),
            clock::now(),
            Theme { has_colours: false },
        )
    }

    /// Everything on the screen that a record changes.
    fn shown(app: &App) -> (u64, &str, usize, Vec<&str>) {
        let overview = &app.overview;
        let reviews = overview.status.reviews.iter();
        (
            overview.head.seq,
            &overview.head.digest,
            overview.status.ledger.segments,
            reviews.map(|row| row.review.as_str()).collect(),
        )
    }

    /// Writes these lines of the ledger into a segment whose first record is number `first`, counted from 0.
    fn write(root: &Path, lines: &[&str], first: usize, end: usize) {
        let name = format!(".settled/ledger/{:020}.jsonl", first + 1);
        fs::write(root.join(name), lines[first..end].concat()).expect("a segment");
    }

    #[test]
    fn a_poll_takes_at_most_a_fifth_of_the_time() {
        let millis = Duration::from_millis;
        for (took, paused) in [(0, 100), (25, 100), (26, 104), (1_000, 4_000)] {
            assert_eq!(pause(millis(took)), millis(paused), "{took} ms");
        }
    }

    #[test]
    fn a_screen_follows_records_into_the_next_segment_and_a_ledger_that_was_put_back() {
        let root = recorded_workspace::workspace();
        let root = root.path();
        let ledger = root.join(".settled/ledger/00000000000000000001.jsonl");
        let ledger = fs::read_to_string(ledger).expect("a ledger");
        let lines: Vec<&str> = ledger.split_inclusive('\n').collect();
        let options = Options {
            root: root.to_owned(),
            named_root: None,
            agent: None,
            review: None,
        };
        let open = || Followed {
            follower: Follower::open(root).expect("a workspace"),
            options: &options,
        };
        write(root, &lines, 0, 4);
        let mut followed = open();
        let mut screen = app(&followed);
        // Segments begin where batches do. The last step restores the ledger to its first four records.
        for (first, end, records) in [
            (0, 5, 5),
            (5, 8, 8),
            (5, lines.len(), lines.len()),
            (0, 4, 4),
        ] {
            if records == 4 {
                let newer = root.join(".settled/ledger/00000000000000000006.jsonl");
                fs::remove_file(newer).expect("a segment");
            }
            write(root, &lines, first, end);
            // The end of a trouble is no news beside a record, and takes none away.
            screen.trouble = (records == 8).then(|| "the disk is gone".to_owned());
            assert!(followed.poll(&mut screen), "{records} records");
            assert_eq!(screen.trouble, None);
            assert_eq!(screen.overview.head.seq, records as u64);
            assert_eq!(shown(&screen), shown(&app(&open())));
            assert!(
                !followed.poll(&mut screen),
                "nothing after {records} records"
            );
            screen.trouble = Some("the disk is gone".to_owned());
            assert!(followed.poll(&mut screen), "it is back");
            assert_eq!(screen.trouble, None);
        }
    }
}
