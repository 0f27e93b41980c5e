//! The part of the quality gate that an approval and its packet show, reported as warnings, because only the daemon
//! knows the review: its threads decide, and on a person's pull request the gate only advises.

use std::collections::BTreeSet;

use message_schema::body::{Body, GateResult, Nit};
use message_schema::id::FindingId;
use message_schema::packet::{Action, CommandResult, Finding};
use message_schema::{Code, Message, Place};

use super::consistency::{body_place, named};
use super::packet::ReadPacket;
use crate::found::Found;
use crate::violation::{Source, Violation, shown};

/// Warns of everything for which the gate will refuse an approval; other messages have no gate.
pub(crate) fn foresee(
    message: &Message,
    body: Option<&Body>,
    packet: Option<&ReadPacket>,
    found: &mut Found,
) {
    let Some(Body::Lgtm(lgtm)) = body else {
        return;
    };
    if lgtm.quality_gate_result == GateResult::Fail {
        let place = body_place(message, "quality_gate_result");
        let text = "`quality_gate_result` is `fail`, which contradicts an approval".to_owned();
        found.push(
            warning(Source::Message, place, text)
                .field("body.quality_gate_result")
                .found("fail")
                .expected("pass")
                .fix("send a review_feedback instead"),
        );
    }
    if let Some(packet) = packet {
        blocking(packet, found);
        uncovered(&lgtm.nits, packet, found);
        validation(packet, found);
    }
}

fn findings(packet: &ReadPacket) -> &[Finding] {
    packet
        .packet
        .findings()
        .map_or(&[], |packet| &packet.findings)
}

fn warning(file: Source, place: Option<Place>, text: String) -> Violation {
    Violation::new(Code::QualityGateViolation, file, place, text).warning()
}

fn source(packet: &ReadPacket) -> Source {
    Source::Packet(packet.packet.path.as_str().to_owned())
}

/// Returns a warning about a packet's findings together, at their key.
fn of_findings(packet: &ReadPacket, text: String, fix: &str) -> Violation {
    let place = packet.root.field("findings").map(|field| field.key_place);
    warning(source(packet), place, text)
        .field("findings")
        .fix(fix)
}

fn blocking(packet: &ReadPacket, found: &mut Found) {
    let blocking: Vec<&Finding> = findings(packet)
        .iter()
        .filter(|finding| finding.counts_as_blocking())
        .collect();
    if !blocking.is_empty() {
        let text = format!(
            "an approval names a packet with findings that block{}",
            named(&blocking)
        );
        let fix = "send a review_feedback, or resolve what is fixed with `status: fixed`";
        found.push(of_findings(packet, text, fix));
    }
}

/// Warns of findings left open that no nit covers, by its source or one for one. The tier of a thread that an earlier
/// packet opened is unknown here, so a nit of either tier may cover it.
fn uncovered(nits: &[Nit], packet: &ReadPacket, found: &mut Found) {
    let is_left = |finding: &&Finding| {
        let is_with_a_person = matches!(finding.action, Some(Action::Veto | Action::Escalate));
        !finding.blocks()
            && !finding.status.is_settled()
            && finding.action != Some(Action::Resolve)
            && !is_with_a_person
    };
    let named_by_nits: BTreeSet<&FindingId> =
        nits.iter().filter_map(|nit| nit.source.as_ref()).collect();
    let mut spare = nits.iter().filter(|nit| nit.source.is_none());
    let mut is_covered = |finding: &&Finding| {
        named_by_nits.contains(finding.same_as.as_ref().unwrap_or(&finding.id))
            || spare.next().is_some()
    };
    let left: Vec<&Finding> = findings(packet)
        .iter()
        .filter(is_left)
        .filter(|finding| !is_covered(finding))
        .collect();
    if !left.is_empty() {
        let text = format!(
            "an approval leaves open findings that no nit covers{}",
            named(&left)
        );
        found.push(of_findings(
            packet,
            text,
            "add a nit to the approval for each, with its id as `source`",
        ));
    }
}

/// Warns of commands whose last recorded result is a failure.
fn validation(packet: &ReadPacket, found: &mut Found) {
    let packet_of = packet.packet.findings();
    let Some(validation) = packet_of.and_then(|packet| packet.qa_validation.as_ref()) else {
        return;
    };
    let runs = &validation.commands_run;
    let mut seen = BTreeSet::new();
    let is_last = |at: &usize| seen.insert(&runs[*at].command);
    let last = (0..runs.len()).rev().filter(is_last);
    for at in last.filter(|at| runs[*at].result == CommandResult::Fail) {
        let list = packet
            .root
            .field("qa_validation")
            .and_then(|field| field.value.field("commands_run"));
        let run = list.and_then(|field| field.value.items().get(at));
        let place = run
            .and_then(|run| run.field("result"))
            .map(|field| field.value.place);
        let text = format!(
            "an approval names a packet in which `{}` failed",
            shown(&runs[at].command)
        );
        found.push(
            warning(source(packet), place, text)
                .field(format!("qa_validation.commands_run[{at}].result"))
                .found("fail")
                .expected("pass")
                .fix("send a review_feedback, or run the command again and record that it passes"),
        );
    }
}
