//! Follows a workspace on a terminal: looks at the ledger, draws, and does what keys ask for.

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

/// The time to wait for a key before the next look at the ledger.
const LOOK: Duration = Duration::from_millis(100);

/// The time between two looks at the rest, after which the clock goes on too: outboxes, runs, the daemon.
const TICK: Duration = Duration::from_secs(1);

/// After a look, this many times as long as it took passes before the next: a large mailroom takes no more than a fifth
/// of a core.
const REST: u32 = 4;

/// The workspace to show and the agent that looks.
#[derive(Clone, Debug)]
pub struct Options {
    /// The workspace.
    pub root: PathBuf,
    /// The workspace as commands have to name it, where the environment does not.
    pub named_root: Option<PathBuf>,
    /// The agent that looks.
    pub agent: Option<AgentName>,
    /// The pull request to begin with.
    pub review: Option<PrNumber>,
}

/// A workspace that is followed.
struct Followed<'a> {
    follower: Follower,
    options: &'a Options,
}

/// Shows the workspace until somebody ends it.
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
        is_changed = match event::poll(LOOK) {
            Ok(true) => match event::read()? {
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
            },
            Ok(false) => false,
            // A signal: the loop's condition says whether it is the end.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => false,
            Err(error) => return Err(error.into()),
        };
        if looked.elapsed() >= LOOK.max(took * REST) {
            let begun = Instant::now();
            let is_tick =
                looked.elapsed() >= TICK || app.now.timestamp() != clock::now().timestamp();
            is_changed |= followed.look(&mut app, is_tick);
            (took, looked) = (begun.elapsed(), Instant::now());
        }
    }
    Ok(())
}

impl Followed<'_> {
    fn spell(&self, agent: Option<&AgentName>, words: &str) -> String {
        shell::settled(words, self.options.named_root.as_deref(), agent)
    }

    fn overview(&self) -> Overview {
        let spell = |agent: Option<&_>, words: &str| self.spell(agent, words);
        self.follower.overview(clock::now(), &spell)
    }

    /// Chooses the review that was asked for, and reads the chosen one.
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

    /// Looks at the ledger, and at all the rest where it is time for that. True if the screen may have changed.
    fn look(&mut self, app: &mut App, is_tick: bool) -> bool {
        let has_changed = match self.follower.refresh() {
            Ok(has_changed) => has_changed | app.trouble.take().is_some(),
            Err(error) => {
                app.trouble = Some(format!("the ledger cannot be read: {error}"));
                return true;
            }
        };
        if has_changed || is_tick {
            app.show(self.overview(), clock::now());
            self.read(app);
        }
        has_changed || is_tick
    }
}
