//! `settled diff`: prints the change of an open request from the reviewer's checkout, and records what was printed.

use std::io::{self, Write as _};
use std::path::PathBuf;

use git::changes::FileDiff;
use mailbox::served::{self, NoDiff, OwnChange, Served, ServedFile};
use mailbox::shown::{self, ShownRequest};
use message_schema::id::RepoPath;
use message_schema::line::escaped;
use serde_json::json;

use super::answer::CommandOutput;
use super::brief::RequestArgs;
use super::context::{Context, quoted};
use super::failure::Failure;
use crate::exit::Exit;

/// Prints the change of an open request.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled diff 86                          the whole change
  settled diff 86 --file src/lock.rs       one file
  settled diff 86 --names                  the files, and which you have printed

`settled lgtm` and `settled feedback` say in `examined.served` what was printed.

Exit codes: 0 printed, 1 this checkout has another change, 3 no request is open.")]
pub(super) struct Args {
    #[command(flatten)]
    which: RequestArgs,
    /// Only this file; repeatable
    #[arg(long, value_name = "PATH", num_args = 1..)]
    file: Vec<RepoPath>,
    /// Only the file names
    #[arg(long)]
    names: bool,
    /// The checkout
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo_dir: PathBuf,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let me = context.me()?;
    let ask = args.which.ask(context, &me)?;
    shown::note(&me.root, &me.agent, &ShownRequest::from(&ask));
    let change = served::change(&ask, &args.repo_dir).map_err(|why| failure(&why, args))?;
    let is_named = |part: &&FileDiff| args.file.is_empty() || args.file.contains(&part.path);
    if let Some(other) = args
        .file
        .iter()
        .find(|file| !change.parts.iter().any(|part| part.path == **file))
    {
        let message = format!("{} does not differ", escaped(other.as_str()));
        return Err(Failure::plain(Exit::NotFound, message));
    }
    let parts: Vec<&FileDiff> = change.parts.iter().filter(is_named).collect();
    if args.names || context.json {
        let served_file = if args.names {
            ServedFile::of
        } else {
            ServedFile::with_diff
        };
        let files: Vec<ServedFile<'_>> = parts
            .iter()
            .map(|part| served_file(part, ask.served.as_ref()))
            .collect();
        let OwnChange {
            base, head, digest, ..
        } = &change;
        let data = json!({ "base_sha": base, "head": head, "diff_digest": digest, "files": files });
        context.say(&CommandOutput::new(data), |_| {
            files.iter().map(ServedFile::line).collect()
        })?;
        let shown = parts.iter().filter(|part| !args.names && part.has_content);
        note(
            &me,
            &ask.brief.request,
            &change,
            shown.map(|part| part.path.clone()).collect(),
        )?;
        return Ok(Exit::Ok);
    }
    let printed = print(&parts)?;
    note(&me, &ask.brief.request, &change, printed)?;
    Ok(Exit::Ok)
}

/// Prints the parts and returns the files printed in full. Stops when the reader closes the pipe.
fn print(parts: &[&FileDiff]) -> io::Result<Vec<RepoPath>> {
    let mut out = io::stdout().lock();
    let mut printed = Vec::new();
    for part in parts {
        match out.write_all(&part.text).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            written => written?,
        }
        if part.has_content {
            printed.push(part.path.clone());
        }
    }
    Ok(printed)
}

fn note(
    me: &super::context::Me,
    request: &message_schema::id::MessageId,
    change: &OwnChange,
    printed: Vec<RepoPath>,
) -> Result<(), Failure> {
    if printed.is_empty() {
        return Ok(());
    }
    let receipt = Served {
        diff_digest: change.digest.clone(),
        files: printed,
    };
    served::note(&me.root, &me.agent, request, receipt).map_err(|error| {
        let message = format!("printed the change, but cannot save the receipt: {error}");
        Failure::plain(Exit::Failed, message)
    })
}

fn failure(why: &NoDiff, args: &Args) -> Failure {
    let failure = Failure::new(Exit::Failed, why);
    match why {
        NoDiff::Absent { commit, .. } => failure.next(format!(
            "git -C {} fetch origin {commit}",
            quoted(args.repo_dir.as_os_str())
        )),
        NoDiff::NotSaid | NoDiff::Other { .. } | NoDiff::OtherFiles { .. } | NoDiff::Git(_) => {
            failure
        }
    }
}
