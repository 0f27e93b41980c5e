//! The rules alone: deciding and applying one message while many reviews are open, beside reading and checking the same
//! message; and folding a ledger, beside hashing its bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use chrono::{DateTime, Utc};
use message_schema::id::AgentName;
use review::{ContentDigest, Policy, Posted, State};
use validate_message::{PacketInput, Valid};

use super::figures::Result;

/// The number of measured rounds; each takes four messages of one open review.
const PLAYED: usize = 2_500;

pub(crate) fn run(open: usize) -> Result<()> {
    let policy = Policy {
        agents: ["claude", "codex"]
            .map(|name| Ok((AgentName::new(name)?, BTreeSet::new())))
            .into_iter()
            .collect::<Result<BTreeMap<_, _>>>()?,
        ..Policy::default()
    };
    let now = DateTime::from_timestamp(1_771_000_000, 0).ok_or("an instant")?;
    let mut state = State::default();
    for number in 1..=open {
        post(&mut state, &policy, &valid(&request(number, 1), None)?, now)?;
    }
    let texts: Vec<(String, Option<&str>)> = (1..=PLAYED.min(open)).flat_map(play).collect();

    let read = Instant::now();
    let messages: Vec<Valid> = texts
        .iter()
        .map(|(text, packet)| valid(text, *packet))
        .collect::<Result<_>>()?;
    let read = read.elapsed().as_secs_f64();
    let rules = Instant::now();
    for message in &messages {
        post(&mut state, &policy, message, now)?;
    }
    let rules = rules.elapsed().as_secs_f64();

    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let each = |seconds: f64| seconds * 1e6 / messages.len() as f64;
    println!(
        "the rules, {open} reviews open, {} messages of whole reviews",
        messages.len()
    );
    println!(
        "  parse and check                       {:>9.2} us",
        each(read)
    );
    println!(
        "  decide and apply                      {:>9.2} us   to reach: 5 us",
        each(rules)
    );
    println!(
        "  ratio                                 {:>9.2}\n",
        rules / read
    );
    Ok(())
}

fn post(state: &mut State, policy: &Policy, valid: &Valid, now: DateTime<Utc>) -> Result<()> {
    let posted = Posted {
        outbox: &valid.envelope().from,
        digest: ContentDigest([0; 32]),
        valid,
    };
    let decision =
        review::decide(state, policy, posted, now).map_err(|refusal| format!("{refusal:?}"))?;
    review::apply(state, &decision.into_judgement().into(), now);
    Ok(())
}

fn valid(text: &str, packet: Option<&str>) -> Result<Valid> {
    let message = message_schema::parse(text.as_bytes())?;
    let packet = packet.map_or(PacketInput::NotNamed, |packet| {
        PacketInput::Bytes(packet.as_bytes())
    });
    validate_message::check(&message, packet).map_err(|violations| format!("{violations:?}").into())
}

const FOUND: &str = "findings:
  - {id: F-001, severity: P1, status: open, title: the empty diff is not handled, file: src/diff.rs, line: 40}
  - {id: F-002, severity: P3, status: open, title: a typo in the help text, file: src/cli.rs}
";

const FIXED: &str = "findings:
  - {id: F-001, severity: P1, status: fixed}
  - {id: F-002, severity: P3, status: fixed}
";

/// The messages of a review after its first request: feedback, addressed, the second request, lgtm.
fn play(pr: usize) -> [(String, Option<&'static str>); 4] {
    let feedback = "findings_packet: packets/findings/f.yaml\n  round: 1\n  blocking_count: 1";
    let addressed = "commit_sha: abc1234\n  changes_summary: fixed\n  round: 1";
    let lgtm = "quality_gate_result: pass\n  merge_ready: true\n  findings_packet: packets/findings/g.yaml";
    [
        (
            message(pr, 2, "codex", "review_feedback", feedback),
            Some(FOUND),
        ),
        (
            message(pr, 3, "claude", "review_addressed", addressed),
            None,
        ),
        (request(pr, 4), None),
        (message(pr, 5, "codex", "review_lgtm", lgtm), Some(FIXED)),
    ]
}

fn request(pr: usize, step: u8) -> String {
    let body = format!("pr: {pr}\n  branch: change-{pr}\n  diff_summary: what was changed and why");
    message(pr, step, "claude", "review_request", &body)
}

fn message(pr: usize, step: u8, from: &str, kind: &str, body: &str) -> String {
    let to = if from == "claude" { "codex" } else { "claude" };
    format!(
        "id: msg-{pr}-{step}\nfrom: {from}\nto: {to}\ntype: {kind}\npriority: P1\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"{pr}\"\nsubject: change {pr}\nbody: |\n  {body}\n"
    )
}
