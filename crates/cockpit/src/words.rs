//! The words that the two agents of a review exchanged, and the tokens and costs that their messages report.

use std::collections::BTreeMap;

use inspect::status::threads::Threads;
use mailbox::said::Said;
use message_schema::id::AgentName;
use review::ReviewKey;
use serde::Serialize;

use crate::timeline::StoredMessage;

/// The usage that an agent's messages in a review report, unchecked. Later versions add fields and never change one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReportedUsage {
    /// The agent.
    pub agent: String,
    /// The number of messages that report anything.
    pub messages: u64,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Seconds of wall time.
    pub wall_time_s: f64,
    /// The estimated cost in US dollars.
    pub cost_usd: f64,
}

/// Enough characters of a commit to be unique in practice, and for git to find it.
const COMMIT_SHOWN: usize = 12;

/// Returns a text with its commits and digests shortened, for a place that shows the full ones nearby.
pub fn with_short_commits(text: &str) -> String {
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let mut short = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(is_hex) {
        let (before, from) = rest.split_at(begin);
        let end = from.find(|c| !is_hex(c)).unwrap_or(from.len());
        let (run, after) = from.split_at(end);
        let is_a_word = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        let is_whole = is_a_word(before.chars().next_back()) && is_a_word(after.chars().next());
        let shown = match run.len() {
            40 | 64 if is_whole => &run[..COMMIT_SHOWN],
            _ => run,
        };
        short += before;
        short += shown;
        rest = after;
    }
    short + rest
}

/// Adds the words of both agents to each thread.
pub fn add_words(told: &mut Threads, said: &Said) {
    for thread in &mut told.threads {
        if let Some(finding) = said.findings.get(&thread.id) {
            thread.evidence.clone_from(&finding.evidence);
            thread.recommendation.clone_from(&finding.recommendation);
        }
        thread.reported = said.reported(&thread.id);
    }
}

/// The words of both agents, from the messages of the ledger; `reviewer` is the current one.
pub(crate) fn words_in(key: &ReviewKey, reviewer: &AgentName, messages: &[StoredMessage]) -> Said {
    let mut said = Said::default();
    for message in messages {
        let packet = || Some(message.packet.as_ref()?.as_bytes().to_vec());
        said.note(
            &message.text,
            &message.at,
            &[&key.author, &key.reviewer, reviewer],
            packet,
        );
    }
    said
}

/// The tokens, time and cost that the messages report, by agent.
pub(crate) fn usage(messages: &[StoredMessage]) -> Vec<ReportedUsage> {
    let mut by_agent: BTreeMap<&str, ReportedUsage> = BTreeMap::new();
    for message in messages {
        let Ok(parsed) = message_schema::parse(message.text.as_bytes()) else {
            continue;
        };
        let number =
            |field: &str| -> Option<f64> { parsed.root().field_text(field)?.trim().parse().ok() };
        let count =
            |field: &str| -> Option<u64> { parsed.root().field_text(field)?.trim().parse().ok() };
        let (input, output) = (count("input_tokens"), count("output_tokens"));
        let (seconds, cost) = (number("wall_time_s"), number("est_cost_usd"));
        if input.is_none() && output.is_none() && seconds.is_none() && cost.is_none() {
            continue;
        }
        let usage = by_agent.entry(&message.from).or_default();
        usage.agent.clone_from(&message.from);
        usage.messages += 1;
        usage.input_tokens = usage.input_tokens.saturating_add(input.unwrap_or(0));
        usage.output_tokens = usage.output_tokens.saturating_add(output.unwrap_or(0));
        usage.wall_time_s += seconds.unwrap_or(0.0);
        usage.cost_usd += cost.unwrap_or(0.0);
    }
    by_agent.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_commits_are_shortened() {
        let commit = "9b2f41c07de1a3b85c6f2e94d1a07b3c5e8f6a21";
        let told = |text: &str| with_short_commits(text);
        assert_eq!(
            told(&format!("codex approves {commit}, not {commit}")),
            "codex approves 9b2f41c07de1, not 9b2f41c07de1"
        );
        for other in [
            &format!("x{commit}"),
            &format!("{commit}0"),
            "abc1234 at 10:00",
            "",
        ] {
            assert_eq!(told(other), *other);
        }
    }

    #[test]
    fn what_the_messages_of_an_agent_report_is_added_up() {
        let message = |from: &str, text: &str| StoredMessage {
            at: "2026-11-23T08:00:00Z".to_owned(),
            from: from.to_owned(),
            text: text.into(),
            packet: None,
        };
        let told = usage(&[
            message("codex", "input_tokens: 100\noutput_tokens: 10\n"),
            message("claude", "type: review_request\n"),
            message("codex", "wall_time_s: 1.5\nest_cost_usd: 0.25\n"),
            message(
                "codex",
                "input_tokens: 7\nwall_time_s: 3\nest_cost_usd: 0.5\n",
            ),
            message("gemini", "output_tokens: 2\n"),
        ]);
        let codex = ReportedUsage {
            agent: "codex".to_owned(),
            messages: 3,
            input_tokens: 107,
            output_tokens: 10,
            wall_time_s: 4.5,
            cost_usd: 0.75,
        };
        let gemini = ReportedUsage {
            agent: "gemini".to_owned(),
            messages: 1,
            output_tokens: 2,
            ..ReportedUsage::default()
        };
        assert_eq!(told, [codex, gemini]);
    }
}
