//! The reviewers of a soak that are played through files. They take each request, and then approve, find something,
//! answer wrong once or until the review is escalated, or stay silent until their seconds are over.

use settled_tests::seed;

use super::authors::{Authors, Case};
use super::desk::{Came, Desk};

/// Answers a message if it is a request. It was taken from the inbox, so its seconds are running.
pub(super) fn answer(desk: &mut Desk, authors: &Authors, came: &Came) {
    let Some(pr) = came
        .pr()
        .filter(|_| came.field("type") == Some("review_request"))
    else {
        return;
    };
    let Some(case) = authors
        .cases
        .get(&pr)
        .filter(|case| case.reviewer == came.to)
    else {
        return;
    };
    let case = case.clone();
    match desk.dice.roll(100) {
        0..40 => approve(desk, &case, pr),
        40..74 => find(desk, &case, pr),
        74..82 => {
            contradict(desk, &case, pr);
            approve(desk, &case, pr);
        }
        82..86 => (0..3).for_each(|_| contradict(desk, &case, pr)),
        86..90 => {
            // Two answers to one request: the second is too late.
            approve(desk, &case, pr);
            find(desk, &case, pr);
        }
        // Silence.
        _ => {}
    }
}

fn approve(desk: &mut Desk, case: &Case, pr: u64) {
    let id = desk.id("lgtm");
    let body = format!(
        "quality_gate_result: pass\nmerge_ready: true\nround: {}",
        case.round
    );
    send(desk, case, pr, "review_lgtm", &id, &body);
}

/// Sends an approval that contradicts itself: refused, and costs an attempt.
fn contradict(desk: &mut Desk, case: &Case, pr: u64) {
    let id = desk.id("contradiction");
    send(
        desk,
        case,
        pr,
        "review_lgtm",
        &id,
        "quality_gate_result: fail\nmerge_ready: true",
    );
}

/// Finds something new in each round; relies on the author's report for earlier findings.
fn find(desk: &mut Desk, case: &Case, pr: u64) {
    let id = desk.id("feedback");
    let packet = format!("{id}.yaml");
    let round = case.round;
    let text = format!(
        "findings:\n- {{id: F-{round}, severity: P1, status: open, title: \"part {round} of change {pr} breaks\", file: src/part{round}.rs, line: {round}}}\n"
    );
    let body =
        format!("findings_packet: packets/findings/{packet}\nround: {round}\nblocking_count: 1");
    // The packet may arrive after the message that names it.
    if desk.chance(10) {
        send(desk, case, pr, "review_feedback", &id, &body);
        desk.lay(&packet, &text);
    } else {
        desk.lay(&packet, &text);
        send(desk, case, pr, "review_feedback", &id, &body);
    }
}

fn send(desk: &mut Desk, case: &Case, pr: u64, kind: &str, id: &str, body: &str) {
    let text = seed::review_message(kind, id, case.reviewer, case.author, &pr.to_string(), body);
    desk.post(case.reviewer, id, &text);
}
