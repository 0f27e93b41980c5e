//! `settled feedback` and `settled lgtm`: makes a reviewer's packet and message from a small file or a few options.

use std::path::{Path, PathBuf};

use mailbox::compose::ask::{Ask, name_whole_head};
use mailbox::compose::omissions::ResponseKind;
use mailbox::compose::response::{self, Unwritten};
use mailbox::compose::response_file::{LooseResponse, ResponseFile, ThreadAction};
use mailbox::compose::words_from::WordsFrom;
use mailbox::shown;
use message_schema::Code;
use message_schema::envelope::Priority;
use message_schema::id::{MessageId, RepoPath};
use message_schema::line::escaped;
use serde_json::{Map, Value, json};
use workspace::clock;

use super::bodies::{self, Telemetry};
use super::brief::RequestArgs;
use super::context::Context;
use super::failure::Failure;
use super::input;
use super::posting::{self, SendOptions};
use crate::exit::Exit;

/// Sends findings and an action for each open thread.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled feedback 86 --findings findings.yaml
  settled feedback 86 --findings - <<'EOF'
  findings:
  - {severity: P1, title: the lock is kept, file: src/lock.rs, line: 40}
  threads: {F-1-001: resolve, F-1-002: {action: reply, evidence: see line 44}}
  EOF
  settled feedback 86 --action F-1-001=escalate
  settled feedback --findings answer.json   as `settled brief --schema` has it")]
pub(super) struct FeedbackArgs {
    #[command(flatten)]
    which: RequestArgs,
    /// A file with `findings` and `threads`, as below, or the answer by `settled brief --schema`; `-` is standard input
    #[arg(long, value_name = "FILE", required_unless_present = "action")]
    findings: Option<PathBuf>,
    /// The reason to escalate to a person
    #[arg(long, value_name = "TEXT")]
    escalation: Option<String>,
    #[command(flatten)]
    said: ResponseInput,
}

/// Approves.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled lgtm 86
  settled lgtm 86 --head abc1234 --ran \"cargo test=pass\" --nit \"rename the flag\"
  settled lgtm 86 --action F-1-003=defer
  settled lgtm --findings answer.json")]
pub(super) struct LgtmArgs {
    #[command(flatten)]
    which: RequestArgs,
    /// A file as for `settled feedback`, with `threads`, `nits` and `commands_run`
    #[arg(long, value_name = "FILE", alias = "nits")]
    findings: Option<PathBuf>,
    /// A nit for later: a P3 that the author takes; repeatable
    #[arg(long, value_name = "TEXT")]
    nit: Vec<String>,
    /// Approve, but mark the pull request as not ready to merge
    #[arg(long)]
    not_merge_ready: bool,
    #[command(flatten)]
    said: ResponseInput,
}

/// Options of both commands.
#[derive(Debug, clap::Args)]
struct ResponseInput {
    /// The action on an open thread: resolve, veto, escalate, reply, or in an lgtm defer; repeatable
    #[arg(long, value_name = "ID=ACTION", value_parser = pair)]
    action: Vec<(String, String)>,
    /// A command you ran and its result: pass, fail or warn; repeatable
    #[arg(long, value_name = "COMMAND=RESULT", value_parser = pair)]
    ran: Vec<(String, String)>,
    /// The reviewed commit
    #[arg(long, value_name = "SHA", alias = "validated-head")]
    head: Option<String>,
    /// A changed file that you read other than with `settled diff`; repeatable
    #[arg(long, value_name = "PATH", num_args = 1..)]
    examined: Vec<RepoPath>,
    /// The subject, one line [default: from the pull request]
    #[arg(long, value_name = "LINE")]
    subject: Option<String>,
    /// P0 to P3 [default: P2]
    #[arg(long, value_name = "P", value_parser = bodies::priority)]
    priority: Option<Priority>,
    #[command(flatten)]
    telemetry: Telemetry,
    #[command(flatten)]
    way: SendOptions,
}

pub(super) fn feedback(args: &FeedbackArgs, context: &Context) -> Result<Exit, Failure> {
    let own = [("--escalation", args.escalation.is_some())];
    let (sheet, text) = args.said.sheet(args.findings.as_ref(), &own, |loose| {
        if args.escalation.is_some() {
            loose.escalation.clone_from(&args.escalation);
        }
    })?;
    respond(
        context,
        &args.which,
        (&args.said, origin(args.findings.as_deref(), &text)),
        &sheet,
        ResponseKind::Feedback,
    )
}

pub(super) fn lgtm(args: &LgtmArgs, context: &Context) -> Result<Exit, Failure> {
    let own = [
        ("--nit", !args.nit.is_empty()),
        ("--not-merge-ready", args.not_merge_ready),
    ];
    let (sheet, text) = args.said.sheet(args.findings.as_ref(), &own, |loose| {
        let nit =
            |summary: &String| Map::from_iter([("summary".to_owned(), summary.as_str().into())]);
        loose.nits.extend(args.nit.iter().map(nit));
        if args.not_merge_ready {
            loose.merge_ready = Some(Value::Bool(false));
        }
    })?;
    respond(
        context,
        &args.which,
        (&args.said, origin(args.findings.as_deref(), &text)),
        &sheet,
        ResponseKind::Lgtm,
    )
}

fn origin<'a>(file: Option<&'a Path>, text: &'a str) -> WordsFrom<'a> {
    file.map_or(WordsFrom::Response, |file| WordsFrom::Findings {
        file,
        text,
    })
}

impl ResponseInput {
    /// The response in the file, with the additions of these options and of the command's own. Fails if one is given
    /// beside structured output, which has a place for none.
    fn sheet(
        &self,
        file: Option<&PathBuf>,
        own: &[(&str, bool)],
        add: impl FnOnce(&mut LooseResponse),
    ) -> Result<(ResponseFile, String), Failure> {
        let (mut sheet, text) = file.map_or_else(
            || Ok((ResponseFile::Loose(Box::default()), String::new())),
            |file| input::sheet(file),
        )?;
        match &mut sheet {
            ResponseFile::Loose(loose) => {
                for (id, action) in &self.action {
                    loose.act(
                        id.clone(),
                        ThreadAction {
                            action: action.clone(),
                            ..ThreadAction::default()
                        },
                    );
                }
                let run = |(command, result): &(String, String)| json!({ "command": command, "result": result });
                loose.commands_run.extend(self.ran.iter().map(run));
                if !self.examined.is_empty() {
                    let examined = loose.examined.get_or_insert_default();
                    examined.declared.extend(self.examined.iter().cloned());
                }
                if self.head.is_some() {
                    loose.validated_head.clone_from(&self.head);
                }
                add(loose);
            }
            ResponseFile::Structured(_) | ResponseFile::Word => {
                let shared = [
                    ("--action", !self.action.is_empty()),
                    ("--ran", !self.ran.is_empty()),
                    ("--head", self.head.is_some()),
                    ("--examined", !self.examined.is_empty()),
                ];
                let mut options = shared.iter().chain(own);
                if let Some((option, _)) = options.find(|(_, is_given)| *is_given) {
                    let message = format!(
                        "structured output is complete: {option} works only with a findings file"
                    );
                    return Err(Failure::plain(Exit::Usage, message));
                }
            }
        }
        Ok((sheet, text))
    }
}

fn respond(
    context: &Context,
    which: &RequestArgs,
    (said, origin): (&ResponseInput, WordsFrom<'_>),
    sheet: &ResponseFile,
    verdict: ResponseKind,
) -> Result<Exit, Failure> {
    let me = context.me()?;
    let now = clock::now();
    // Repeated after a crash, the command finds no open request, because the response was accepted.
    let ask = match which.ask(context, &me) {
        Ok(ask) => ask,
        Err(nothing) => {
            let kind = verdict.message_type();
            return posting::sent_before(context, &me, kind, which.pr(), &said.way)
                .unwrap_or(Err(nothing));
        }
    };
    let brief = std::env::var_os("SETTLED_BRIEF");
    if let Some(read) = shown::read_instead(&me.root, &ask, brief.as_deref().map(Path::new)) {
        return Err(unread(context, &ask, &read));
    }
    let mut response = response::write(&ask, sheet, verdict, origin, said.telemetry.turns, now)
        .map_err(|why| unwritten(context, &ask, &why))?;
    let silent = std::mem::take(&mut response.silent);
    let mut draft = response.draft(&ask, verdict);
    draft.priority = said.priority;
    draft.subject.clone_from(&said.subject);
    said.telemetry.add(&mut draft);
    let silent = silent.iter().map(|id| {
        (
            "resolved_by_silence",
            format!(
                "{} is resolved by silence: the author reported fixes, and the response does not name it",
                escaped(id)
            ),
        )
    });
    let other = name_whole_head(&mut draft.body, ask.brief.head.as_ref());
    let notes = silent.chain(other).collect();
    posting::post(context, &me, &draft, (&said.way, origin), notes, now)
}

/// The failure of a response to a request that the reviewer has not read.
fn unread(context: &Context, ask: &Ask, read: &MessageId) -> Failure {
    let open = &ask.brief.request;
    let head = ask
        .brief
        .head
        .as_ref()
        .map_or_else(String::new, |head| format!(" for {head}"));
    let message = format!(
        "nothing was written: you have read the request {read}, and {open}{head} is the open one now"
    );
    Failure::plain(Exit::InvalidMessage, message)
        .code(Code::RequestMismatch.as_str())
        .next(context.command(&format!("brief {}", ask.brief.pr)))
}

/// The reason that nothing was written, with the fix.
fn unwritten(context: &Context, ask: &Ask, why: &Unwritten) -> Failure {
    let exit = match why {
        Unwritten::Gate(_) => Exit::GateRefused,
        Unwritten::Other(_) => Exit::Usage,
        Unwritten::Untitled(_) | Unwritten::Gaps(_) | Unwritten::Response(_) | Unwritten::Empty => {
            Exit::InvalidMessage
        }
    };
    let failure = Failure {
        code: why.code().map(Code::as_str),
        ..Failure::plain(exit, why.to_string())
    };
    let next = |verb: &str| context.command(&format!("{verb} {}", ask.brief.pr));
    match why {
        Unwritten::Gaps(gaps) => failure
            .data(&json!({ "threads": gaps }))
            .next(next("brief")),
        Unwritten::Gate(broken) => failure
            .data(&json!({ "clauses": broken }))
            .next(next("brief")),
        Unwritten::Empty => failure.next(next("lgtm")),
        Unwritten::Untitled(_) | Unwritten::Response(_) | Unwritten::Other(_) => failure,
    }
}

/// Splits the text at the last `=`.
fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .rsplit_once('=')
        .ok_or("expected two texts with `=` between them")?;
    if name.is_empty() || value.is_empty() {
        return Err("expected two texts with `=` between them".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}
