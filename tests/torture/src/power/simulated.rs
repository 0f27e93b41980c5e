//! The daemon's mailroom on a disk that forgets everything unsynced: harsher than a real file system, fast, and
//! deterministic.
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use daemon::mailroom::Mailroom;
use daemon::schedule::Wakeup;
use spool::{Arrival, Disk, FaultyDisk, Layout, Notes, OpenMode, Recovery, VolatileDisk};
use workspace::clock::Moment;

use super::history::History;
use super::judge::{self, Said, Scene};
use super::{Options, Report};
use crate::checker;
use crate::dice::Dice;
use crate::messages::{AGENTS, Message, Mix};
use crate::taker::{self, Take};

/// The number of messages posted at a time: few, so that every position can be tried.
const LOT: usize = 4;
/// One in this many states has its recovery cut too, at this many positions.
const SECOND_EVERY: usize = 40;
const SECOND_CUTS: usize = 4;

/// The fate of the changes that a cut may undo.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Lost,
    Kept,
    /// Only the n-th.
    Only(usize),
    /// All but the n-th.
    AllBut(usize),
    /// All, but of the last one only these sectors.
    Torn(u64),
    /// A random selection of changes, and of the sectors of some.
    Some(u64),
}

#[derive(Clone, Copy, Debug)]
struct Cut {
    at: usize,
    fate: Fate,
}

/// Runs a workload on a disk that forgets, and tries what cuts may leave.
pub(crate) fn run(options: &Options<'_>) -> io::Result<Report> {
    let scratch = super::scratch()?;
    let root = scratch.path().join("room");
    Layout::init(&root, &AGENTS).map_err(io::Error::other)?;
    // The daemon makes missing directories again and then has to make them durable.
    std::fs::remove_dir(root.join("agents/codex/sent"))?;
    std::fs::remove_dir(root.join("agents/claude/dead_letter"))?;
    let (history, notes) = record(&root, options.rounds)?;
    let mut dice = Dice::new(options.seed);
    let cuts = choose(&notes, options.states, &mut dice);
    let mut report = Report::new("simulated");
    report.records = history.ledger.len();
    report.taken = history.takes.len();
    report.writes = notes.len();
    options.tell(&format!(
        "simulated: {} changes, {} records; {} states to try",
        notes.len(),
        report.records,
        cuts.len()
    ));
    for (number, cut) in cuts.iter().enumerate() {
        if report.is_hopeless() {
            break;
        }
        let place = scratch.path().join("cut");
        restore(&notes, cut, &place)?;
        let later = if number % SECOND_EVERY == SECOND_EVERY - 1 {
            SECOND_CUTS
        } else {
            0
        };
        if later > 0 {
            let (second, log) = recorded_recovery(&place, &history, cut.at)?;
            for second_cut in choose(&log, later, &mut dice) {
                restore(&log, &second_cut, &place)?;
                report.second += 1;
                trial(
                    &place,
                    &second,
                    second_cut.at,
                    &format!("{cut:?} then {second_cut:?}"),
                    &mut report,
                )?;
            }
            restore(&notes, cut, &place)?;
        }
        trial(&place, &history, cut.at, &format!("{cut:?}"), &mut report)?;
        if number % 2000 == 1999 {
            options.tell(&format!("{} of {} states", number + 1, cuts.len()));
        }
    }
    Ok(report)
}

/// Posts messages and serves them, with daemons that end normally and killed ones in turn, and notes what anybody could
/// see.
fn record(root: &Path, rounds: usize) -> io::Result<(History, Notes)> {
    let disk = Arc::new(VolatileDisk::new(root, "boot-1")?);
    let mut history = History::default();
    let mut clock = Hands::start();
    for round in 0..rounds {
        let mix = [Mix::Several, Mix::Notes, Mix::Requests][round % 3];
        let messages = mix.messages(LOT, round as u64 + 1);
        history.messages.extend(messages.iter().cloned());
        let (mut mailroom, _) = open(root, Arc::clone(&disk) as _)?;
        let mut begun = None;
        for few in messages.chunks(LOT / 2) {
            few.iter()
                .try_for_each(|message| post(&*disk, root, message))?;
            clock.serve(&mut mailroom)?;
            take(&disk, root, &mut history)?;
            // One in four daemons begins a checkpoint and keeps delivering before it syncs.
            if round % 4 == 2 && begun.is_none() {
                let delivered = checker::records(root).map_err(io::Error::other)?.len();
                let checkpoint = mailroom.begin_checkpoint(&Arc::default());
                let checkpoint = checkpoint.map_err(io::Error::other)?;
                begun = checkpoint.map(|begun| (begun, delivered));
            }
        }
        let records = checker::records(root).map_err(io::Error::other)?.len();
        history.acknowledged.push((disk.position(), records));
        // Every other daemon is killed before it syncs.
        if let Some((begun, delivered)) = begun {
            let ended = mailroom.end_checkpoint(begun.sync());
            ended.map_err(io::Error::other)?;
            history.checkpoints.push((disk.position(), delivered));
        } else if round % 2 == 0 {
            mailroom.checkpoint().map_err(io::Error::other)?;
            history.checkpoints.push((disk.position(), records));
        }
    }
    let notes = disk.notes();
    for (path, position) in notes.appearances() {
        history.saw(path.to_string_lossy().into_owned(), position);
    }
    history.end = notes.len();
    history.ledger = checker::lines(root);
    Ok((history, notes))
}

fn open(root: &Path, disk: Arc<dyn Disk>) -> io::Result<(Mailroom, Recovery)> {
    Mailroom::open_on(root, disk).map_err(io::Error::other)
}

/// The time of these runs: each pass is a minute after the one before, so the daemon waits for nobody.
struct Hands(u64, DateTime<Utc>);

impl Hands {
    fn start() -> Hands {
        Hands(1_000_000, Utc::now() + TimeDelta::minutes(5))
    }

    /// Lets the mailroom work until it is idle.
    fn serve(&mut self, mailroom: &mut Mailroom) -> io::Result<()> {
        mailroom.sweep().map_err(io::Error::other)?;
        for _ in 0..50 {
            self.0 += 60_000;
            let now = Moment {
                mono: self.0,
                utc: self.1,
            };
            let pass = mailroom.pass(now).map_err(io::Error::other)?;
            let look = mailroom.schedule(now).at(Wakeup::Look);
            if pass.is_empty() && look.is_none() && mailroom.undelivered() == 0 {
                return Ok(());
            }
        }
        Err(io::Error::other("the mailroom is never at rest"))
    }
}

/// Writes a message through the disk without a sync, as most writers do.
fn post(disk: &dyn Disk, root: &Path, message: &Message) -> io::Result<()> {
    let at = disk.open_root(root)?;
    let outbox = disk.open_dir(&at, &Path::new("agents").join(message.from).join("outbox"))?;
    let part = PathBuf::from(format!(".{}.part", message.file));
    let file = disk.open(&outbox, &part, OpenMode::New)?;
    disk.write_at(&file, message.text.as_bytes(), 0)?;
    disk.rename_new(&outbox, &part, &outbox, Path::new(&message.file))
}

/// Lets codex take everything it sees.
fn take(disk: &VolatileDisk, root: &Path, history: &mut History) -> io::Result<()> {
    let at = disk.open_root(root)?;
    let inbox = disk.open_dir(&at, Path::new("agents/codex/inbox"))?;
    for path in taker::visible(&root.join("agents/codex/inbox")) {
        let (file, bytes) = (taker::name_of(&path), std::fs::read(&path)?);
        let take = Take {
            agent: "codex".to_owned(),
            file: file.clone(),
            bytes,
        };
        history.takes.push((disk.position(), take));
        disk.remove(&inbox, Path::new(&file))?;
    }
    Ok(())
}

/// Recovers on a disk that forgets, so that the recovery itself can be cut.
fn recorded_recovery(place: &Path, history: &History, at: usize) -> io::Result<(History, Notes)> {
    let disk = Arc::new(VolatileDisk::new(place, "boot-2")?);
    let (mut mailroom, _) = open(place, Arc::clone(&disk) as _)?;
    Hands::start().serve(&mut mailroom)?;
    mailroom.checkpoint().map_err(io::Error::other)?;
    let notes = disk.notes();
    Ok((
        history.after_cut(at, checker::lines(place), notes.len()),
        notes,
    ))
}

/// Recovers the workspace in another boot, judges it, lets codex take everything, and recovers again.
fn trial(
    place: &Path,
    history: &History,
    at: usize,
    name: &str,
    report: &mut Report,
) -> io::Result<()> {
    report.states += 1;
    let before = judge::look(place);
    let mut wrong = Vec::new();
    match serve_in("boot-8", place) {
        Ok(recovery) => {
            let pass = &recovery.pass;
            let again = pass.redelivered.iter().map(|placed| {
                (
                    usize::try_from(placed.seq).expect("few records"),
                    placed.file.to_string(),
                )
            });
            let torn = recovery.torn.as_ref().map(|torn| (torn.offset, torn.bytes));
            let said = Said {
                again: again.collect(),
                torn,
            };
            report.again += said.again.len();
            report.mended += pass.fixed.len();
            report.torn += usize::from(torn.is_some());
            wrong = judge::judge(&Scene {
                root: place,
                history,
                at,
                before: &before,
                said: &said,
            });
        }
        Err(error) => wrong.push(format!("the recovery failed: {error}")),
    }
    if wrong.is_empty() {
        taker::take_all(place, AGENTS[1], &mut Vec::new());
        let tree = judge::tree(place);
        match serve_in("boot-9", place) {
            Ok(_) => wrong.extend(judge::changed(&tree, &judge::tree(place))),
            Err(error) => wrong.push(format!("the second recovery failed: {error}")),
        }
    }
    report
        .wrong
        .extend(wrong.into_iter().map(|what| format!("{name}: {what}")));
    Ok(())
}

/// Recovers, serves what is there, and ends normally.
fn serve_in(boot: &str, place: &Path) -> io::Result<Recovery> {
    let (mut mailroom, recovery) = open(place, Arc::new(FaultyDisk::new(boot)))?;
    Hands::start().serve(&mut mailroom)?;
    mailroom.checkpoint().map_err(io::Error::other)?;
    Ok(recovery)
}

/// Chooses cuts: every write torn; every position with no change, every change, only one, and all but one; then random
/// ones.
fn choose(notes: &Notes, count: usize, dice: &mut Dice) -> Vec<Cut> {
    let mut cuts = Vec::new();
    for at in 0..=notes.len() {
        cuts.extend([Fate::Lost, Fate::Kept].map(|fate| Cut { at, fate }));
        for n in 0..notes.unsynced(at).len() {
            cuts.extend([Fate::Only(n), Fate::AllBut(n)].map(|fate| Cut { at, fate }));
        }
    }
    dice.shuffle(&mut cuts);
    cuts.truncate(count / 2);
    // A write of several sectors may be torn between any two.
    for at in
        (1..=notes.len()).filter(|at| notes.sectors(at - 1).is_some_and(|sectors| sectors > 2))
    {
        cuts.extend((0..3).map(|_| Cut {
            at,
            fate: Fate::Torn(dice.any()),
        }));
    }
    while cuts.len() < count {
        cuts.push(Cut {
            at: dice.below(notes.len() + 1),
            fate: Fate::Some(dice.any()),
        });
    }
    cuts
}

/// Restores what a cut left into an empty directory.
fn restore(notes: &Notes, cut: &Cut, place: &Path) -> io::Result<()> {
    if place.exists() {
        std::fs::remove_dir_all(place)?;
    }
    let open = notes.unsynced(cut.at);
    let place_of = |n: usize| open.get(n).copied().unwrap_or(usize::MAX);
    let mut arrivals: BTreeMap<usize, Arrival> = BTreeMap::new();
    if let Fate::Some(seed) = cut.fate {
        let mut dice = Dice::new(seed);
        let (percent, is_atomic) = ([15, 50, 85][dice.below(3)], dice.below(2) == 0);
        for index in &open {
            let (roll, sectors) = (dice.below(100), dice.any());
            let arrival = match roll {
                roll if roll < percent / 4 => Arrival::Sectors(sectors),
                roll if roll < percent => Arrival::Whole,
                _ => Arrival::Lost,
            };
            arrivals.entry(*index).or_insert(arrival);
            if let Some(half) = notes.other_half(*index).filter(|_| is_atomic) {
                arrivals.insert(half, arrival);
            }
        }
    }
    let arrival = |index: usize| {
        let arrives = match cut.fate {
            Fate::Lost => false,
            Fate::Kept => true,
            Fate::Only(n) => index == place_of(n),
            Fate::AllBut(n) => index != place_of(n),
            Fate::Torn(sectors) if index + 1 == cut.at => return Arrival::Sectors(sectors),
            Fate::Torn(_) => true,
            Fate::Some(_) => return arrivals.get(&index).copied().unwrap_or(Arrival::Whole),
        };
        if arrives {
            Arrival::Whole
        } else {
            Arrival::Lost
        }
    };
    notes.restore(cut.at, &arrival, place)
}
