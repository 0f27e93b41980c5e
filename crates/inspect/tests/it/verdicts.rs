//! Which records of a ledger the export of a verdict copies, and what their proof shows: each case changes a recorded
//! ledger.

use std::fs;
use std::path::Path;

use chrono::TimeDelta;
use inspect::verdict::{self, ExportError, Exported, RecordUse, VerdictFile};
use review::RULES;

use crate::recorded_workspace::{at, workspace};
use crate::rewritten::rewrite;

const REVIEW: &str = "#88 codex -> claude";

/// The verdict about #88.
fn export(root: &Path) -> Result<Exported, ExportError> {
    let pr = "88".parse().expect("a number");
    verdict::export(root, &pr, None, &[], at(TimeDelta::zero()))
}

fn read(exported: &Exported) -> VerdictFile {
    VerdictFile::read(&exported.bytes).expect("it is whole")
}

/// The records in the file, each with its use.
fn records(root: &Path) -> Vec<(RecordUse, u64)> {
    let file = read(&export(root).expect("a verdict"));
    let records = file.records.iter();
    records.map(|(role, entry)| (*role, entry.seq)).collect()
}

#[test]
fn a_verdict_has_the_policy_the_evidence_and_every_record_of_its_reviews() {
    let root = workspace();
    let exported = export(root.path()).expect("a verdict");
    let file = read(&exported);
    let config = fs::read_to_string(root.path().join("settled.toml")).expect("a config");
    assert_eq!(file.header.policy.toml, Some(config));
    assert_eq!(exported.evidence.keys().collect::<Vec<_>>(), [REVIEW]);
    assert_eq!(file.header.evidence, exported.evidence);
    assert!(exported.unfounded.is_none(), "{:?}", exported.unfounded);
    let proof = verdict::prove(&file).expect("its records follow");
    assert_eq!((proof.judged, proof.given), (2, 0));
    fs::remove_file(root.path().join("settled.toml")).expect("a config");
    let file = read(&export(root.path()).expect("a verdict"));
    assert_eq!(file.header.policy.toml, None);
}

#[test]
fn an_event_of_the_pull_request_is_copied_and_so_is_the_handoff_of_what_it_fixes() {
    let judged = [(RecordUse::Judged, 2), (RecordUse::Judged, 4)];
    let root = workspace();
    assert_eq!(records(root.path()), judged);
    let taken = r#"{"taken":{"pr":"87","reviewer":"gemini"}}"#;
    // An event that moves no review.
    let steps = r#","steps":[{"review":{"pr":"87","author":"claude","reviewer":"gemini"}"#;
    let elsewhere = steps.replace("87", "89");
    let opened = r#"{"pull":{"pr":"88","action":"opened"}}"#;
    rewrite(root.path(), 12, steps, &elsewhere);
    rewrite(root.path(), 12, taken, opened);
    let with_event = [judged[0], judged[1], (RecordUse::Judged, 12)];
    assert_eq!(records(root.path()), with_event);

    let root = workspace();
    let merged = r#"{"pull":{"pr":"87","action":"merged"}},"handoff":{"tasks":[{"id":"handoff-pr87-1","target":"codex","pr":"87","findings":[]}]}"#;
    rewrite(root.path(), 12, taken, merged);
    assert_eq!(records(root.path()), judged, "it fixes nothing");
    let fixes = r#","fixes":"handoff-pr87-1","round":"#;
    rewrite(root.path(), 4, r#","round":"#, fixes);
    let with_task = [judged[0], judged[1], (RecordUse::Given, 12)];
    assert_eq!(records(root.path()), with_task);
}

#[test]
fn a_record_in_another_form_is_not_copied_and_those_of_others_do_not_matter() {
    for (record, of) in [(3, None), (12, None), (2, Some(2)), (4, Some(4))] {
        let root = workspace();
        rewrite(root.path(), record, r#""batch":"#, r#""batch": "#);
        let found = match export(root.path()) {
            Ok(_) => None,
            Err(ExportError::OtherForm { seq }) => Some(seq),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(found, of, "record {record}");
    }
}

#[test]
fn records_of_this_program_s_rules_are_judged_and_those_of_newer_ones_are_not() {
    for (rules, newer) in [(RULES, None), (RULES + 1, Some((2, RULES + 1)))] {
        let root = workspace();
        for record in [2, 4] {
            rewrite(
                root.path(),
                record,
                r#""rules":2"#,
                &format!(r#""rules":{rules}"#),
            );
        }
        let unfounded = export(root.path()).expect("a verdict").unfounded;
        let found = match unfounded {
            None => None,
            Some(verdict::Unfounded::NewerRules { seq, rules }) => Some((seq, rules)),
            Some(error) => panic!("{error}"),
        };
        assert_eq!(found, newer);
    }
}

#[test]
fn evidence_that_does_not_follow_from_the_records_is_told_beside_the_one_that_does() {
    let root = workspace();
    let mut file = read(&export(root.path()).expect("a verdict"));
    let evidence = file.header.evidence.values_mut().next();
    let evidence = evidence.and_then(|it| it.evidence.as_mut());
    evidence.expect("evidence").observed = 9;
    let error = verdict::prove(&file).err().expect("another number");
    let told = |observed: u8| {
        format!(
            r#"{{"{REVIEW}":{{"evidence":{{"digest_matches":false,"declared":0,"served":0,"observed":{observed}}}}}}}"#
        )
    };
    let says = format!(
        "the header shows other evidence than the records lead to: found {}, expected {}",
        told(9),
        told(0)
    );
    assert_eq!(error.to_string(), says);
}
