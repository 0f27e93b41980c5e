//! `settled gc`: lists and removes files that agents have finished with and that are older than the config allows.

use chrono::{DateTime, SecondsFormat, Utc};
use daemon::gc::{self, RetentionReport};
use serde::Serialize;
use spool::{Count, FolderReport, Removal};
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
struct RetentionView {
    dry_run: bool,
    /// The number of days to keep files; absent if forever.
    keep: Keep,
    folders: Vec<Row>,
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
    let removal = if args.dry_run {
        Removal::Pretended
    } else {
        Removal::Now
    };
    let report = gc::tidy(root, &config.retention, clock::now(), removal)?;
    let document = document(&report, &config.retention, args.dry_run);
    let Some(why) = report.failed().next() else {
        context.say(&CommandOutput::new(document), |_| {
            table(&report, &config.retention, removal)
        })?;
        return Ok(Exit::Ok);
    };
    if !context.json {
        print(&table(&report, &config.retention, removal))?;
    }
    Err(Failure::plain(Exit::Failed, format!("could not finish: {why}")).data(&document))
}

fn document(report: &RetentionReport, keep: &RetentionSection, dry_run: bool) -> RetentionView {
    let RetentionSection {
        sent_days,
        archive_days,
        dead_letter_days,
        automatic: _,
    } = *keep;
    RetentionView {
        dry_run,
        keep: Keep {
            sent_days,
            archive_days,
            dead_letter_days,
        },
        folders: report.folders.iter().map(row).collect(),
        torn: report.torn.into(),
    }
}

fn row(folder: &FolderReport) -> Row {
    Row {
        agent: folder.agent.clone(),
        directory: folder.folder.directory(),
        present: folder.there.into(),
        oldest: folder
            .oldest_ns
            .map(|ns| instant(ns).to_rfc3339_opts(SecondsFormat::Secs, true)),
        removed: folder.gone.into(),
        uncertain: folder.uncertain.into(),
        unknown: folder.unknown.into(),
        failed: folder.failed.clone(),
    }
}

fn instant(ns: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_nanos(ns)
}

fn table(report: &RetentionReport, keep: &RetentionSection, removal: Removal) -> String {
    let gone = match removal {
        Removal::Now => "REMOVED",
        Removal::Pretended => "TO GO",
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
    for folder in &report.folders {
        lines.push([
            folder.agent.clone(),
            folder.folder.directory().to_owned(),
            folder.there.files.to_string(),
            size(folder.there.bytes),
            folder.oldest_ns.map_or_else(
                || "-".to_owned(),
                |ns| instant(ns).format("%Y-%m-%d").to_string(),
            ),
            folder.gone.files.to_string(),
            size(folder.gone.bytes),
            folder.uncertain.files.to_string(),
            folder.unknown.files.to_string(),
        ]);
    }
    let sum = report.sum(|folder| folder.gone);
    let verb = match removal {
        Removal::Now => "removed",
        Removal::Pretended => "to be removed",
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
    if report.torn.files > 0 {
        let torn = report.torn;
        text += &format!(
            "{} copies of torn batches in .settled/torn, {}: remove them when you like\n",
            torn.files,
            size(torn.bytes)
        );
    }
    text
}
