//! The text of `settled brief`: everything a reviewer needs to answer, and the effect of each answer.

use judgement::brief::OpenThread;
use mailbox::compose::ask::Ask;
use mailbox::compose::omissions;
use mailbox::said::Said;
use message_schema::line::escaped;
use message_schema::packet::{Action, Stance};
use screen::Screen;

/// Returns the brief as JSON, with the author's words, which the ledger does not keep.
pub fn in_json(ask: &Ask, said: &Said) -> serde_json::Value {
    let request = said.request.as_ref();
    let threads = ask.brief.open_threads.iter().map(|open| {
        let words = said.findings.get(open.id.as_str());
        let value = serde_json::json!({
            "said": words,
            "author": said.reported(open.id.as_str()),
        });
        (open.id.to_string(), value)
    });
    serde_json::json!({
        "branch": request.and_then(|request| request.branch.as_ref()),
        "base_sha": request.and_then(|request| request.base.as_ref()),
        "diff_summary": request.and_then(|request| request.summary.as_ref()),
        "threads": threads.collect::<serde_json::Map<_, _>>(),
    })
}

/// The indented lines of a text that others wrote.
fn words(what: &str, text: Option<&String>) -> Vec<String> {
    let lines = text.iter().flat_map(|text| text.lines()).enumerate();
    lines
        .map(|(n, line)| match n {
            0 => format!("{what}{line}"),
            _ => format!("      {line}"),
        })
        .collect()
}

/// Formats the brief, with the words of both agents.
pub fn text(ask: &Ask, said: &Said, screen: Screen) -> String {
    let mut lines = request(ask, said);
    lines.extend(budget(ask));
    if !ask.brief.open_threads.is_empty() {
        lines.push("open threads, one action each:".to_owned());
    }
    for open in &ask.brief.open_threads {
        lines.extend(open_thread(ask, said, open));
    }
    for held in &ask.brief.held_threads {
        lines.push(format!("with a person: {}, {}", held.id, held.state));
    }
    lines.extend(
        ask.brief
            .look_first
            .iter()
            .map(|file| format!("look first at {file}")),
    );
    lines.extend(
        ask.brief
            .validation_commands
            .iter()
            .map(|command| format!("an lgtm must record this as pass: {command}")),
    );
    lines.extend(effects(ask));
    lines.iter().fold(String::new(), |text, line| {
        text + &screen.wrap(6, &escaped(line))
    })
}

/// The lines about the request: its round, its commits and the author's summary.
fn request(ask: &Ask, said: &Said) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {} asks for round {}, the {} of {}{}",
        ask.key(),
        ask.brief.author,
        ask.brief.round,
        ordinal(ask.brief.round_of_generation),
        ask.brief.rounds_of_generation,
        if ask.brief.last_round {
            ", the last"
        } else {
            ""
        }
    )];
    lines.push(format!("  request {}", ask.brief.request));
    let request = said.request.as_ref();
    let branch = request.and_then(|request| request.branch.as_ref());
    let base = request.and_then(|request| request.base.as_ref());
    let of = |what: &str, value: Option<String>| {
        value.map_or_else(String::new, |value| format!("  {what} {value}"))
    };
    let commits = [
        of("branch", branch.cloned()),
        of("head", ask.brief.head.as_ref().map(ToString::to_string)),
        of("base", base.cloned()),
    ];
    lines.extend(Some(commits.concat()).filter(|line| !line.is_empty()));
    lines.extend(words(
        "  summary: ",
        request.and_then(|request| request.summary.as_ref()),
    ));
    lines
}

/// The lines about the turns, the seconds and the attempts left.
fn budget(ask: &Ask) -> Vec<String> {
    let budget = &ask.brief.budget;
    let mut lines = vec![format!(
        "  left: {} turns, {} s after `settled take`, {} attempts",
        budget.turns_left, budget.runtime_s_left, budget.attempts_left
    )];
    lines.extend(budget.take_by.iter().map(|at| format!("  take it by {at}")));
    lines.extend(
        budget
            .answer_by
            .iter()
            .map(|at| format!("  answer by {at}")),
    );
    lines
}

/// The lines about one open thread: the finding, its legal actions, and the words of both agents.
fn open_thread(ask: &Ask, said: &Said, open: &OpenThread) -> Vec<String> {
    let blocks = if open.blocking { ", blocks" } else { "" };
    let at = open.file.as_ref().map_or_else(String::new, |file| {
        let range = open
            .lines
            .map_or_else(String::new, |lines| format!(":{}", String::from(lines)));
        format!("  {file}{range}")
    });
    let title = open.title.as_deref().unwrap_or_default();
    let mut lines = vec![format!(
        "  {} {}{blocks}  {title}{at}",
        open.id, open.severity
    )];
    lines.extend(legal_actions(ask, open));
    if let Some(finding) = said.findings.get(open.id.as_str()) {
        lines.extend(words("    evidence: ", finding.evidence.as_ref()));
    }
    lines.extend(words(
        &format!("    {}: ", ask.brief.author),
        said.reported(open.id.as_str()).as_ref(),
    ));
    match (ask.feedback_resolves(open), ask.lgtm_resolves(open)) {
        (true, _) => {
            lines.push("    reported as addressed: resolved if you do not name it".to_owned());
        }
        (false, true) => lines.push("    resolved by an lgtm that does not name it".to_owned()),
        (false, false) => {}
    }
    lines
}

fn legal_actions(ask: &Ask, open: &OpenThread) -> Vec<String> {
    let legal = |stance| {
        open.legal(Some(stance))
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (seeks, accepts) = (legal(Stance::SeeksChange), legal(Stance::Accepts));
    let mut lines = vec![match seeks == accepts {
        true => format!("    legal: {seeks}"),
        false => format!("    legal: {seeks}; with stance accepts: {accepts}"),
    }];
    if !open.legal.seeks_change.contains(&Action::Reply) && !ask.brief.last_round {
        lines.push(format!(
            "    {}",
            omissions::illegal(ask, open, Action::Reply)
        ));
    }
    if !open.blocking && ask.brief.lgtm_possible {
        lines.push("    in an lgtm also: defer".to_owned());
    }
    lines
}

/// The lines about the effect of each response.
fn effects(ask: &Ask) -> Vec<String> {
    let author = &ask.brief.author;
    let effects = match (ask.brief.last_round, ask.advised) {
        (true, true) => [
            "the last round: reply is not legal".to_owned(),
            format!("feedback: ends the dialogue with {author} and closes the review"),
        ],
        (true, false) => [
            "the last round: reply is not legal".to_owned(),
            format!("feedback: ends the dialogue with {author}; a person decides"),
        ],
        (false, _) => [
            format!("feedback: {author} fixes and asks again"),
            "veto, escalate: a person decides the thread, and the review if nothing else blocks"
                .to_owned(),
        ],
    };
    let mut lines = Vec::from(effects);
    lines.push("lgtm: approves".to_owned());
    if !ask.brief.lgtm_possible && !ask.brief.held_threads.is_empty() {
        lines.push("an lgtm cannot pass: a blocker is with a person".to_owned());
    }
    lines
}

fn ordinal(n: u32) -> String {
    match n {
        1 => "first".to_owned(),
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        n => format!("{n}th"),
    }
}
