//! `settled brief`: shows what the current round asks of a reviewer.

use mailbox::compose::ask::{self, Ask, AskError};
use mailbox::compose::review_status::{ReviewStatus, ReviewStatuses};
use mailbox::my_reviews;
use mailbox::said::Said;
use mailbox::shown::{self, ShownRequest};
use message_schema::id::{AgentName, PrNumber, Repo};
use message_schema::line::escaped;
use workspace::clock;

use super::answer::{self, CommandOutput};
use super::context::{Context, Me};
use super::failure::Failure;
use super::home;
use crate::exit::Exit;
use screen::Screen;
use views::brief::{in_json, text};
use workspace::directory::agent_name;

/// Shows a reviewer its brief.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled brief                    the one request open with you
  settled brief 86 --json
  settled brief 86 --schema > answer-schema.json

Exit codes: 0 a request is open with you, 3 none is.")]
pub(super) struct Args {
    #[command(flatten)]
    which: RequestArgs,
    /// Print only the JSON Schema of the response, for structured output
    #[arg(long, conflicts_with = "json")]
    schema: bool,
}

/// The open request that a command is about.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RequestArgs {
    /// The number of the pull request; optional if only one request is open with you
    #[arg(value_name = "PR")]
    pr: Option<PrNumber>,
    /// The author, if several have a request open with you
    #[arg(long, value_name = "AGENT", value_parser = agent_name)]
    author: Option<AgentName>,
    /// The repository, if the number alone is ambiguous
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<Repo>,
}

impl RequestArgs {
    /// The pull request, if one is given.
    pub(super) fn pr(&self) -> Option<&PrNumber> {
        self.pr.as_ref()
    }

    /// Finds the one open request that matches.
    pub(super) fn ask(&self, context: &Context, me: &Me) -> Result<Ask, Failure> {
        let open = ask::open(&me.root, &me.agent, clock::now()).map_err(|error| match &error {
            AskError::Config(_) => Failure::new(Exit::Usage, &error),
            AskError::Briefs(_) => Failure::new(Exit::Temporary, &error),
        })?;
        let mut meant: Vec<Ask> = open.into_iter().filter(|ask| self.means(ask)).collect();
        match meant.len() {
            0 => Err(self.nothing(context, me)),
            1 => Ok(meant.swap_remove(0)),
            _ => {
                let keys: Vec<String> = meant.iter().map(|ask| ask.key().to_string()).collect();
                let message = format!(
                    "{} requests are open with you: {}; say which",
                    keys.len(),
                    keys.join(", ")
                );
                Err(Failure::plain(Exit::Usage, message))
            }
        }
    }

    fn means(&self, ask: &Ask) -> bool {
        let repo = |named: &Repo| {
            ask.brief
                .repo
                .as_ref()
                .is_none_or(|own| own.same_repo(named))
        };
        self.pr.as_ref().is_none_or(|pr| ask.brief.pr.same_pr(pr))
            && self
                .author
                .as_ref()
                .is_none_or(|author| ask.brief.author == *author)
            && self.repo.as_ref().is_none_or(repo)
    }

    fn nothing(&self, context: &Context, me: &Me) -> Failure {
        let about = self
            .pr
            .as_ref()
            .map_or_else(String::new, |pr| format!(" on pull request {pr}"));
        let mut message = format!("no request is open with {}{about}", me.agent);
        let statuses = ReviewStatuses::read(&me.root, &me.agent);
        let mut stand = Vec::new();
        if let Some(statuses) = &statuses {
            let mine = statuses.mine(self.pr.as_ref(), self.repo.as_ref());
            stand.extend(mine.map(|(key, review)| ReviewStatus::of(key, review)));
        }
        for status in &stand {
            message += &format!("\n{}", escaped(&status.phrase()));
        }
        let mut failure = Failure::plain(Exit::NotFound, message)
            .code("no_open_request")
            .data(&serde_json::json!({ "reviews": stand }));
        let mine = self
            .pr
            .as_ref()
            .map(|pr| my_reviews::read(&me.root, pr, &me.agent));
        for mine in mine.into_iter().flatten() {
            for (command, _) in home::moves(&mine, me, context) {
                failure = failure.or(command);
            }
        }
        let other = ask::open(&me.root, &me.agent, clock::now()).ok();
        let has_move = !failure.next.is_empty();
        for ask in other.into_iter().flatten().filter(|_| !has_move) {
            failure.message += &format!("\nopen with you: {}", ask.key());
            failure = failure.or(context.command(&format!("brief {}", ask.brief.pr)));
        }
        if failure.next.is_empty() {
            failure = failure.next(context.command("next"));
        }
        failure
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let me = context.me()?;
    let ask = args.which.ask(context, &me)?;
    shown::note(&me.root, &me.agent, &ShownRequest::from(&ask));
    if args.schema {
        let schema =
            serde_json::to_string_pretty(&ask.whole["response_schema"]).expect("a schema is JSON");
        answer::print(&(schema + "\n"))?;
        return Ok(Exit::Ok);
    }
    let mut answer = CommandOutput::new(ask.whole.clone());
    for alert in &ask.brief.alerts {
        answer.alert(alert.code.clone(), alert.message.as_str());
    }
    let pr = &ask.brief.pr;
    if ask.brief.lgtm_possible {
        answer.next(
            context.command(&format!("lgtm {pr}")),
            "approves, if the quality gate passes",
        );
    }
    // The reader has to fill in words of it, so it is not among the commands that run unchanged.
    let findings = context.command(&format!("feedback {pr} --findings FILE"));
    let said = Said::read(&me.root, &me.agent, &ask.brief.author, pr);
    answer.data["said"] = in_json(&ask, &said);
    context.say(&answer, |_| {
        let screen = Screen::of_output();
        format!(
            "{}answer: {findings}   # findings, or actions on open threads\n",
            text(&ask, &said, screen)
        )
    })?;
    Ok(Exit::Ok)
}
