//! Writes the messages of a walk as text, which is then parsed and checked like any other.

use std::sync::Arc;

use review::ContentDigest;
use validate_message::{PacketInput, check};

use super::{AUTHOR, Advised, Hand, Input, Line, Response, THIRD, agent, minute};
use crate::bounds::Bounds;
use crate::describe::{NAMES, Say};

/// Returns every message between the author and this reviewer about this pull request in this round.
pub(super) fn deal(bounds: &Bounds, line: Line, round: u32) -> Hand {
    let combinations = combinations(bounds);
    let mut full = Vec::new();
    let mut rest = Vec::new();
    for says in &combinations {
        full.push(feedback(bounds, line, round, says, "", ""));
        full.push(lgtm(bounds, line, says, "pass", "", ""));
        // Combine other oddities of a response only with few sayings.
        let is_plain = says.iter().all(|say| bounds.says[..2].contains(say));
        if !(is_plain || bounds.odd) {
            continue;
        }
        for escalation in ["max_rounds_exceeded", "reviewer_budget_exceeded", "stuck"] {
            let fields = format!("escalation: {escalation}");
            rest.push(feedback(bounds, line, round, says, &fields, ""));
        }
        rest.push(feedback(bounds, line, round, says, "", "turns: 1001\n"));
        rest.push(lgtm(bounds, line, says, "pass", "", "turns: 1001\n"));
        rest.push(lgtm(bounds, line, says, "pass", &nits(), ""));
    }
    let silent = vec![Say::Silent; bounds.slots.len()];
    for wrong in [round.saturating_sub(1).max(1), round + 1]
        .into_iter()
        .filter(|wrong| *wrong != round)
    {
        rest.push(feedback(bounds, line, wrong, &silent, "", ""));
        rest.push(lgtm(
            bounds,
            line,
            &silent,
            "pass",
            &format!("round: {wrong}"),
            "",
        ));
    }
    rest.push(lgtm(bounds, line, &silent, "fail", "", ""));
    for commit in ["aaaaaa1", "cccccc1"] {
        let field = format!("validated_head: {commit}");
        rest.push(lgtm(bounds, line, &silent, "pass", &field, ""));
    }
    authors(bounds, line, round, &mut rest);
    strangers(bounds, line, round, &mut rest);
    Hand {
        full,
        rest,
        advised: Advised {
            request: request(bounds, line, "as advised", "", "", 0),
            request_of_a_head: request(
                bounds,
                line,
                "as advised",
                "declared_head: ddddddd1",
                "",
                0,
            ),
            addressed: addressed(line, round, ""),
        },
    }
}

/// Returns a response that the rules accept wherever one is expected.
pub(super) fn response(
    bounds: &Bounds,
    line: Line,
    round: u32,
    response: Response,
    says: &[Say],
) -> Arc<Input> {
    match response {
        Response::Feedback => feedback(bounds, line, round, says, "escalation: stuck", ""),
        Response::Lgtm => lgtm(bounds, line, says, "pass", "", ""),
    }
}

fn combinations(bounds: &Bounds) -> Vec<Vec<Say>> {
    bounds.slots.iter().fold(vec![Vec::new()], |before, _| {
        let each = |says: &Vec<Say>, say: Say| says.iter().copied().chain([say]).collect();
        before
            .iter()
            .flat_map(|says| bounds.says.iter().map(move |say| each(says, *say)))
            .collect()
    })
}

fn packet(bounds: &Bounds, says: &[Say]) -> (String, usize) {
    let written = says
        .iter()
        .enumerate()
        .map(|(place, say)| say.written(place, bounds.slots[place]));
    let (texts, counts): (Vec<_>, Vec<_>) = written.unzip();
    (
        format!("findings: [{}]\n", texts.concat().join(", ")),
        counts.iter().sum(),
    )
}

fn feedback(
    bounds: &Bounds,
    Line { pr, reviewer }: Line,
    round: u32,
    says: &[Say],
    fields: &str,
    envelope: &str,
) -> Arc<Input> {
    let (packet, blocking) = packet(bounds, says);
    let body = format!(
        "findings_packet: packets/findings/p.yaml\nround: {round}\nblocking_count: {blocking}\n{fields}"
    );
    let draft = Draft {
        label: &format!(
            "{reviewer}: feedback of round {round} of {pr} {fields}{}{says:?}",
            envelope.trim()
        ),
        outbox: reviewer,
        from: reviewer,
        to: AUTHOR,
        kind: "review_feedback",
        envelope: &format!("related_pr: {pr}\n{envelope}"),
        body: &body,
        minute: 4,
    };
    let carries = fields.contains("reviewer_budget_exceeded") || envelope.contains("turns");
    draft.input(says, Some(&packet), carries)
}

fn lgtm(
    bounds: &Bounds,
    Line { pr, reviewer }: Line,
    says: &[Say],
    result: &str,
    fields: &str,
    envelope: &str,
) -> Arc<Input> {
    let is_silent = says.iter().all(|say| *say == Say::Silent);
    let named = if is_silent {
        ""
    } else {
        "findings_packet: packets/findings/p.yaml\n"
    };
    let nits = if fields.contains("nits") {
        "nits "
    } else {
        fields
    };
    let draft = Draft {
        label: &format!(
            "{reviewer}: lgtm of {pr} {result} {nits}{}{says:?}",
            envelope.trim()
        ),
        outbox: reviewer,
        from: reviewer,
        to: AUTHOR,
        kind: "review_lgtm",
        envelope: &format!("related_pr: {pr}\n{envelope}"),
        body: &format!("quality_gate_result: {result}\nmerge_ready: true\n{named}{fields}"),
        minute: 4,
    };
    let packet = (!is_silent).then(|| packet(bounds, says).0);
    draft.input(says, packet.as_deref(), false)
}

/// A nit for each possible thread.
fn nits() -> String {
    let nit = |(id, ..): &(&str, &str, &str)| {
        format!(
            "\n  - {{nit_id: N-{id}, tier: P3, summary: s, owner: o, next_action: later, source: {id}}}"
        )
    };
    format!("nits:{}", NAMES.iter().map(nit).collect::<String>())
}

/// Adds the messages that the author can send in this round.
fn authors(bounds: &Bounds, line: Line, round: u32, rest: &mut Vec<Arc<Input>>) {
    let mut ask = |label: &str, fields: &str, priority: &str, minute: i64| {
        rest.push(request(bounds, line, label, fields, priority, minute));
    };
    for fields in bounds.requests {
        ask(fields, fields, "", 0);
    }
    let later = format!("round: {}", round + 2);
    ask("of a round it does not open", &later, "", 0);
    if bounds.supersedes {
        let open = "supersedes_message_id: req";
        ask("replacing the open one", open, "", 1);
        ask("replacing the open one, at once", open, "priority: P0\n", 1);
        let unknown = "supersedes_message_id: old";
        ask("replacing no known one", unknown, "", 1);
    }
    rest.extend(
        bounds
            .reports
            .iter()
            .map(|fields| addressed(line, round, fields)),
    );
    rest.push(addressed(line, round + 1, ""));
}

fn request(
    bounds: &Bounds,
    Line { pr, reviewer }: Line,
    label: &str,
    fields: &str,
    priority: &str,
    minute: i64,
) -> Arc<Input> {
    let draft = Draft {
        label: &format!("{AUTHOR}: request to {reviewer} about {pr} {label}"),
        outbox: AUTHOR,
        from: AUTHOR,
        to: reviewer,
        kind: "review_request",
        envelope: priority,
        body: &format!(
            "pr: {pr}\nbranch: b\ndiff_summary: s\nmax_turns_reviewer: {}\n{fields}",
            bounds.turns
        ),
        minute,
    };
    draft.input(&[], None, false)
}

fn addressed(Line { pr, reviewer }: Line, round: u32, fields: &str) -> Arc<Input> {
    let draft = Draft {
        label: &format!("{AUTHOR}: addressed of round {round} of {pr} {fields}"),
        outbox: AUTHOR,
        from: AUTHOR,
        to: reviewer,
        kind: "review_addressed",
        envelope: &format!("related_pr: {pr}\n"),
        body: &format!("commit_sha: bbbbbb1\nchanges_summary: c\nround: {round}\n{fields}"),
        minute: 5,
    };
    draft.input(&[], None, false)
}

/// Adds messages from senders that must not send them.
fn strangers(bounds: &Bounds, Line { pr, reviewer }: Line, round: u32, rest: &mut Vec<Arc<Input>>) {
    // A person can give the number to another author, whose review is a walk of its own.
    let may_ask = bounds.pulls || !bounds.acts.is_empty();
    let third = if reviewer == THIRD { "llama" } else { THIRD };
    let lgtm = "quality_gate_result: pass\nmerge_ready: true";
    let related = format!("related_pr: {pr}\n");
    let request = format!("pr: {pr}\nbranch: b\ndiff_summary: s");
    let addressed = format!("commit_sha: bbbbbb1\nchanges_summary: c\nround: {round}");
    for (outbox, from, to, kind, envelope, body) in [
        (AUTHOR, AUTHOR, reviewer, "review_lgtm", &*related, lgtm),
        (third, third, AUTHOR, "review_lgtm", &related, lgtm),
        (AUTHOR, reviewer, AUTHOR, "review_lgtm", &related, lgtm),
        (reviewer, reviewer, AUTHOR, "review_request", "", &request),
        (third, third, reviewer, "review_request", "", &request),
        (
            reviewer,
            reviewer,
            AUTHOR,
            "review_addressed",
            &related,
            &addressed,
        ),
        (
            third,
            third,
            reviewer,
            "review_addressed",
            &related,
            &addressed,
        ),
    ] {
        if may_ask && kind == "review_request" {
            continue;
        }
        let label = &format!("{from}: {kind} to {to}, in the outbox of {outbox}");
        rest.push(
            Draft {
                label,
                outbox,
                from,
                to,
                kind,
                envelope,
                body,
                minute: 4,
            }
            .input(&[], None, false),
        );
    }
}

/// A message before it becomes text.
#[derive(Clone, Copy)]
struct Draft<'a> {
    label: &'a str,
    outbox: &'a str,
    from: &'a str,
    to: &'a str,
    kind: &'a str,
    /// Envelope lines besides the required ones.
    envelope: &'a str,
    body: &'a str,
    minute: i64,
}

impl Draft<'_> {
    fn input(self, says: &[Say], packet: Option<&str>, carries: bool) -> Arc<Input> {
        let Self {
            label,
            outbox,
            from,
            to,
            kind,
            envelope,
            body,
            minute: at,
        } = self;
        let body: String = body.lines().map(|line| format!("  {line}\n")).collect();
        let priority = if envelope.contains("priority:") {
            ""
        } else {
            "priority: P1\n"
        };
        let text = format!(
            "id: req\nfrom: {from}\nto: {to}\ntype: {kind}\ncreated_at_utc: 2026-02-13T10:00:00Z\n\
             subject: a subject\n{priority}{envelope}body: |\n{body}"
        );
        let message = message_schema::parse(text.as_bytes())
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        let input = packet.map_or(PacketInput::NotNamed, |packet| {
            PacketInput::Bytes(packet.as_bytes())
        });
        let valid = check(&message, input)
            .unwrap_or_else(|found| panic!("{found:#?}\n{text}{}", packet.unwrap_or_default()));
        Arc::new(Input {
            label: label.to_owned(),
            outbox: agent(outbox),
            digest: digest(&text, packet),
            valid,
            at: minute(at),
            says: says.to_vec(),
            carries,
        })
    }
}

/// Replaces SHA-256: distinct texts get distinct digests.
fn digest(text: &str, packet: Option<&str>) -> ContentDigest {
    let mut bytes = [0_u8; 32];
    for (place, byte) in text
        .bytes()
        .chain(packet.unwrap_or_default().bytes())
        .enumerate()
    {
        bytes[place % 32] = bytes[place % 32].wrapping_mul(31).wrapping_add(byte);
    }
    ContentDigest(bytes)
}
