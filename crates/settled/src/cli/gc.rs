//! `settled gc`: lists and removes files that agents have finished with and that are older than the config allows.

use chrono::{DateTime, SecondsFormat, Utc};
use daemon::gc::{self, Mode, Sweep};
use serde::Serialize;
use spool::{Count, FolderReport};
use workspace::clock;
use workspace::config::{Config, RetentionSection};

use super::answer::{CommandOutput, print};
use super::context::{Context, Root};
use super::failure::Failure;
use crate::exit::Exit;
use views::table::{columns, size};

/// Removes old files that agents have finished with.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled gc --dry-run ./mailroom    what would be removed
  settled gc ./mailroom")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    /// Only show the files that would be removed
    #[arg(long)]
    dry_run: bool,
}

/// The JSON form. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct SweepView {
    dry_run: bool,
    /// The number of days to keep files; absent if forever.
    keep: Keep,
    shelves: Vec<Row>,
    /// Copies of torn batches, which are never removed.
    torn: Files,
}

#[derive(Debug, Serialize)]
struct Keep {
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_days: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    archive_days: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_days: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Row {
    agent: String,
    directory: &'static str,
    present: Files,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<String>,
    /// Removed or, with `--dry-run`, due for removal.
    removed: Files,
    /// Old files whose delivery a power cut could still undo.
    uncertain: Files,
    /// Old files that no record knows.
    unknown: Files,
    failed: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Files {
    files: u64,
    bytes: u64,
}

impl From<Count> for Files {
    fn from(Count { files, bytes }: Count) -> Self {
        Self { files, bytes }
    }
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let root = context.workspace()?;
    let config = Config::load(root).map_err(|error| Failure::new(Exit::Usage, &error))?;
    let mode = if args.dry_run {
        Mode::DryRun
    } else {
        Mode::Remove
    };
    let sweep = gc::sweep(root, &config.retention, clock::now(), mode)?;
    let document = document(&sweep, &config.retention, args.dry_run);
    let Some(why) = sweep.failed().next() else {
        context.say(&CommandOutput::new(document), |_| {
            table(&sweep, &config.retention, mode)
        })?;
        return Ok(Exit::Ok);
    };
    if !context.json {
        print(&table(&sweep, &config.retention, mode))?;
    }
    Err(Failure::plain(Exit::Failed, format!("could not finish: {why}")).data(&document))
}

fn document(sweep: &Sweep, keep: &RetentionSection, dry_run: bool) -> SweepView {
    let RetentionSection {
        sent_days,
        archive_days,
        dead_letter_days,
        automatic: _,
    } = *keep;
    SweepView {
        dry_run,
        keep: Keep {
            sent_days,
            archive_days,
            dead_letter_days,
        },
        shelves: sweep.shelves.iter().map(row).collect(),
        torn: sweep.torn.into(),
    }
}

fn row(shelved: &FolderReport) -> Row {
    Row {
        agent: shelved.agent.clone(),
        directory: shelved.folder.directory(),
        present: shelved.there.into(),
        oldest: shelved
            .oldest_ns
            .map(|ns| instant(ns).to_rfc3339_opts(SecondsFormat::Secs, true)),
        removed: shelved.gone.into(),
        uncertain: shelved.uncertain.into(),
        unknown: shelved.unknown.into(),
        failed: shelved.failed.clone(),
    }
}

fn instant(ns: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_nanos(ns)
}

fn table(sweep: &Sweep, keep: &RetentionSection, mode: Mode) -> String {
    let gone = match mode {
        Mode::Remove => "REMOVED",
        Mode::DryRun => "TO GO",
    };
    let heading = [
        "AGENT",
        "DIRECTORY",
        "FILES",
        "SIZE",
        "OLDEST",
        gone,
        "SIZE",
        "UNCERTAIN",
        "UNKNOWN",
    ];
    let mut lines = vec![heading.map(str::to_owned)];
    for shelved in &sweep.shelves {
        lines.push([
            shelved.agent.clone(),
            shelved.folder.directory().to_owned(),
            shelved.there.files.to_string(),
            size(shelved.there.bytes),
            shelved.oldest_ns.map_or_else(
                || "-".to_owned(),
                |ns| instant(ns).format("%Y-%m-%d").to_string(),
            ),
            shelved.gone.files.to_string(),
            size(shelved.gone.bytes),
            shelved.uncertain.files.to_string(),
            shelved.unknown.files.to_string(),
        ]);
    }
    let sum = sweep.sum(|shelved| shelved.gone);
    let verb = match mode {
        Mode::Remove => "removed",
        Mode::DryRun => "to be removed",
    };
    let mut text = columns(&lines) + &format!("{} files {verb}, {}\n", sum.files, size(sum.bytes));
    let RetentionSection {
        sent_days,
        archive_days,
        dead_letter_days,
        automatic: _,
    } = keep;
    if [sent_days, archive_days, dead_letter_days]
        .iter()
        .all(|days| days.is_none())
    {
        text += "everything is kept forever: [retention] in settled.toml sets no days\n";
    }
    if sweep.torn.files > 0 {
        let torn = sweep.torn;
        text += &format!(
            "{} copies of torn batches in .settled/torn, {}: remove them when you like\n",
            torn.files,
            size(torn.bytes)
        );
    }
    text
}
