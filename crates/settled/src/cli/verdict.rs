//! `settled verdict`: exports a verdict to a file, and verifies such a file.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use inspect::verdict::{
    self, Anchor, ApprovalVerdict, EvidenceSummary, ExportError, NoAnswer, VerdictFile,
};
use message_schema::id::{AgentName, PrNumber, Repo};
use message_schema::line::escaped;
use serde::Serialize;
use spool::Digest;
use workspace::{clock, regular_file};

use super::answer::CommandOutput;
use super::context::Context;
use super::failure::Failure;
use super::gate::{self, At};
use super::input;
use crate::exit::Exit;

/// Exports and verifies verdicts.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled verdict export 86 -o verdict-86.txt
  settled verdict verify verdict-86.txt --head \"$HEAD\"")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Export the records of a pull request's reviews to a file that can be verified without a daemon
    #[command(after_help = "Examples:
  settled verdict export 86 -o verdict-86.txt
  settled verdict export 86 --reviewer codex > verdict-86.txt")]
    Export(Export),
    /// Judge the records in a file again: exit code 0 if they end in an approval of exactly this commit
    #[command(after_help = "Examples:
  settled verdict verify verdict-86.txt --head \"$HEAD\"
  settled verdict verify verdict-86.txt --head \"$HEAD\" --seal \"$SEAL\"
  settled verdict verify v.txt --head \"$HEAD\" --repo-dir . --base origin/main")]
    Verify(Verify),
}

#[derive(Debug, clap::Args)]
struct Export {
    /// The number of the pull request
    #[arg(value_name = "PR")]
    pr: PrNumber,
    /// The repository, if the number alone is ambiguous
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<Repo>,
    /// A reviewer whose approval counts; repeatable [default: every reviewer of the pull request]
    #[arg(long = "reviewer", value_name = "AGENT")]
    reviewers: Vec<AgentName>,
    /// The output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Verify {
    /// The verdict file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    at: At,
    /// The pull request the file must be about
    #[arg(long, value_name = "PR")]
    pr: Option<PrNumber>,
    /// A reviewer that must approve, even if the file does not name it; repeatable
    #[arg(long = "reviewer", value_name = "AGENT")]
    reviewers: Vec<AgentName>,
    /// The digest of the ledger's last record, as printed on the daemon's machine at export
    #[arg(long, value_name = "DIGEST")]
    anchor: Option<Digest>,
    /// The digest of the whole file, as `export` gave it
    #[arg(long, value_name = "DIGEST")]
    seal: Option<Digest>,
}

/// The result of an export.
#[derive(Debug, Serialize)]
struct ExportView {
    file: String,
    records: usize,
    /// The digest of the whole file.
    seal: Digest,
    ledger: Anchor,
    /// The evidence for each review that counts, by its key.
    evidence: BTreeMap<String, EvidenceSummary>,
}

/// The approval that a file proves.
#[derive(Debug, Serialize)]
struct Proven {
    #[serde(flatten)]
    verdict: ApprovalVerdict,
    /// The number of records judged again.
    judged: usize,
    /// The number of records of other pull requests, whose tasks are taken as given.
    given: usize,
    seal: Digest,
    ledger: Anchor,
    exported_at: String,
    exported_by: String,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    match &args.command {
        Command::Export(args) => export(args, context),
        Command::Verify(args) => verify(args, context),
    }
}

fn export(args: &Export, context: &Context) -> Result<Exit, Failure> {
    let Export {
        pr,
        repo,
        reviewers,
        output,
    } = args;
    let root = context.workspace()?;
    let exported =
        verdict::export(root, pr, repo.as_ref(), reviewers, clock::now()).map_err(|error| {
            let exit = match &error {
                ExportError::NoAnswer(NoAnswer::NoReview { .. }) => Exit::NotFound,
                ExportError::NoAnswer(NoAnswer::Ambiguous { .. }) => Exit::Failed,
                ExportError::Config(_) => Exit::Usage,
                ExportError::Spool(_) | ExportError::OtherForm { .. } => Exit::Failed,
            };
            Failure::new(exit, &error)
        })?;
    let Some(path) = output else {
        if context.json {
            let message = "the file itself goes to standard output: use -o FILE with --json";
            return Err(Failure::plain(Exit::Usage, message.to_owned()));
        }
        std::io::stdout().write_all(&exported.bytes)?;
        return Ok(Exit::Ok);
    };
    let unwritten = |error| Failure::plain(Exit::Failed, format!("{}: {error}", path.display()));
    std::fs::write(path, &exported.bytes).map_err(unwritten)?;
    let (seal, ledger) = (exported.seal, exported.anchor);
    let mut answer = CommandOutput::new(ExportView {
        file: spool::path_text::shown(path),
        records: exported.records,
        seal,
        ledger,
        evidence: exported.evidence,
    });
    if let Some(why) = exported.unfounded {
        let (code, what) = if why.is_of_other_rules() {
            ("rules_changed", "the rules of this program do")
        } else {
            ("policy_changed", "settled.toml as it is now does")
        };
        let message = format!("{what} not explain the records, so nothing is proven: {why}");
        answer.alert(code, message);
    }
    context.say(
        &answer,
        |ExportView {
             file,
             records,
             seal,
             ledger,
             evidence,
         }| {
            let Anchor {
                records: number,
                last,
            } = ledger;
            let shown = evidence
                .iter()
                .map(|(review, one)| format!("  {review}\n{}", gate::shown(one)));
            let shown: String = shown.collect();
            format!("{file}: {records} records\n{shown}seal {seal}\nledger {number} {last}\n")
        },
    )?;
    Ok(Exit::Ok)
}

fn verify(args: &Verify, context: &Context) -> Result<Exit, Failure> {
    let Verify {
        file: path,
        at,
        reviewers,
        ..
    } = args;
    let bytes = read(path)?;
    let shown = escaped(&path.display().to_string());
    let file = VerdictFile::read(&bytes)
        .map_err(|error| Failure::plain(Exit::Failed, format!("{shown} is damaged at {error}")))?;
    if let Some(why) = not_the_one(args, &file) {
        return Err(Failure::plain(Exit::GateRefused, format!("{shown}: {why}")));
    }
    let proof = verdict::prove(&file).map_err(|error| Failure::new(Exit::GateRefused, &error))?;
    let header = file.header;
    let named = Some(reviewers.clone()).filter(|named| !named.is_empty());
    let reviewers = named.unwrap_or(header.reviewers);
    let asked = at.asked(header.pr, header.repo, reviewers);
    let verdict = at.judge(proof.state(), &asked)?;
    let proven = Proven {
        verdict,
        judged: proof.judged,
        given: proof.given,
        seal: file.seal,
        ledger: header.ledger,
        exported_at: header.exported_at,
        exported_by: header.by,
    };
    if !proven.verdict.passes {
        return Err(at.refusal(&proven.verdict, &proven, &asked, context));
    }
    let mut answer = CommandOutput::new(proven);
    at.alert(&mut answer);
    if args.anchor.is_none() && args.seal.is_none() {
        let message = "nothing binds the file to a ledger: pass --seal or --anchor, or trust the channel that brought it";
        answer.alert("unbound_file", message);
    }
    context.say(&answer, |proven| {
        let Proven {
            judged,
            given,
            seal,
            ledger,
            ..
        } = proven;
        let given = if *given == 0 {
            String::new()
        } else {
            format!(", {given} taken as given")
        };
        let Anchor { records, last } = ledger;
        gate::text(&proven.verdict)
            + &format!(
                "{judged} records judged again{given}\nseal {seal}\nledger {records} {last}\n"
            )
    })?;
    Ok(Exit::Ok)
}

/// The reason the file is not the expected one.
fn not_the_one(args: &Verify, file: &VerdictFile) -> Option<String> {
    let Verify {
        pr, anchor, seal, ..
    } = args;
    let of_pr = pr
        .as_ref()
        .filter(|pr| pr.to_canonical() != file.header.pr.to_canonical());
    let of_seal = seal.filter(|seal| *seal != file.seal);
    let of_anchor = anchor.filter(|anchor| *anchor != file.header.ledger.last);
    of_pr
        .map(|pr| format!("it is about pull request {}, expected {pr}", file.header.pr))
        .or(of_seal.map(|seal| format!("its seal is {}, expected {seal}", file.seal)))
        .or(of_anchor.map(|anchor| {
            format!(
                "it was exported where the ledger ended with {}, expected {anchor}",
                file.header.ledger.last
            )
        }))
        .or(anchor.and_then(|_| unreached(file)))
}

/// The reason the ledger's last digest proves nothing: a digest covers only the record before it.
fn unreached(file: &VerdictFile) -> Option<String> {
    let (last, count) = (file.header.ledger.records, file.records.len() as u64);
    let first = file.records.first().map(|(_, entry)| entry.seq);
    let is_reached = first.is_some_and(|first| last.checked_sub(first) == count.checked_sub(1));
    let what = format!("it does not hold every record up to {last}, so --anchor proves nothing");
    (!is_reached).then(|| what + "; expected all of them, or --seal")
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    regular_file::read_given(path, u64::MAX).map_err(|error| {
        let failure = input::unreadable(path, &error);
        if failure.exit == Exit::NotFound {
            failure.next("settled verdict export --help".to_owned())
        } else {
            failure
        }
    })
}
