//! Forged files: damaged ones, and ones made consistent again by somebody who can write them. The forger shares no code
//! with the product.
use inspect::verdict::{ApprovalQuestion, ApprovalVerdict, VerdictFile, prove};
use proptest::prelude::*;
use settled_tests::approval::{HEAD, OTHER, approved};
use settled_tests::mailroom::said;
use sha2::{Digest as _, Sha256};

use super::{Paper, eventful, parts, verify};

#[test]
fn every_byte_of_a_file_counts() {
    let bytes = Paper::of(&approved(HEAD), &[]).text().into_bytes();
    assert!(VerdictFile::read(&bytes).is_ok());
    for at in 0..bytes.len() {
        let mut other = bytes.clone();
        other[at] ^= 1;
        assert!(
            VerdictFile::read(&other).is_err(),
            "byte {at} was made {:?}",
            char::from(other[at])
        );
    }
}

#[test]
fn no_changed_byte_goes_unseen() {
    let paper = Paper::of(&eventful(), &[]);
    let bytes = paper.text().into_bytes();
    let runner = ProptestConfig {
        cases: 150,
        ..ProptestConfig::default()
    };
    proptest!(runner, |(at in 0..bytes.len(), with: u8)| {
        let mut other = bytes.clone();
        prop_assume!(other[at] != with);
        other[at] = with;
        prop_assert_eq!(paper.with(&other), 1, "byte {} was made {}", at, with);
    });
    for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        assert_eq!(paper.with(&bytes[..cut]), 1, "cut off at {cut}");
    }
    let [twice, longer] = [
        [&bytes[..], &bytes[..]].concat(),
        [&bytes[..], b"\n"].concat(),
    ];
    assert_eq!((paper.with(&twice), paper.with(&longer)), (1, 1));
}

#[test]
fn damage_is_told_with_its_place() {
    let paper = Paper::of(&approved(HEAD), &[]);
    let text = paper.text().replacen("A parser.", "A PARSER.", 1);
    let path = paper.directory.path().join("damaged.txt");
    settled_tests::write(&path, &text);
    let output = verify(&path, HEAD, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let said = said(&output);
    assert!(
        said.contains("is damaged at line 3: found a record with the digest sha256:"),
        "{said}"
    );
    assert!(said.contains("expected `sha256:"), "{said}");
}

#[test]
fn no_line_is_dropped_swapped_or_put_in_unseen() {
    let paper = Paper::of(&eventful(), &[]);
    let lines = paper.lines();
    let joined = |lines: &[String]| lines.join("\n") + "\n";
    for at in 0..lines.len() {
        let mut without = lines.clone();
        without.remove(at);
        assert_eq!(
            paper.with(joined(&without).as_bytes()),
            1,
            "without line {}",
            at + 1
        );
        for other in at + 1..lines.len() {
            let mut swapped = lines.clone();
            swapped.swap(at, other);
            assert_eq!(
                paper.with(joined(&swapped).as_bytes()),
                1,
                "lines {} and {}",
                at + 1,
                other + 1
            );
        }
    }
    for foreign in Paper::of(&approved(HEAD), &[]).lines() {
        let mut more = lines.clone();
        more.insert(3, foreign);
        assert_eq!(paper.with(joined(&more).as_bytes()), 1);
    }
}

#[test]
fn a_file_made_consistent_again_needs_decisions_that_follow() {
    let approved = Paper::of(&approved(HEAD), &[]);
    let (header, records) = parts(&approved);
    let again = |records: &[String]| approved.with(sealed(&header, records).as_bytes());
    assert_eq!(again(&records), 0, "as it was");
    // Its first lines cannot claim more evidence than the records show.
    let boasting = header.replace("\"observed\":0", "\"observed\":1");
    assert_ne!(boasting, header);
    assert_eq!(approved.with(sealed(&boasting, &records).as_bytes()), 8);
    // Only the approval, and only the request.
    assert_eq!((again(&records[1..]), again(&records[..1])), (8, 8));
    let forged = |from: &str, to: &str| {
        let forged: Vec<String> = records
            .iter()
            .map(|record| record.replace(from, to))
            .collect();
        assert_ne!(forged, records, "{from}");
        again(&forged)
    };
    assert_eq!(
        forged("\"seq\":2", "\"seq\":9"),
        1,
        "the ledger had no such record"
    );
    assert_eq!(
        forged("A parser.", "B parser."),
        1,
        "the next record names the one before by its digest"
    );
    // A forger who also rewrites the ledger's end and the numbers gets as far as the rules.
    let (header, records) = (
        header.replace("\"records\":2", "\"records\":20"),
        further(&records),
    );
    let again = |records: &[String]| approved.with(sealed(&header, records).as_bytes());
    assert_eq!(again(&records), 0);
    for (from, to) in [
        ("quality_gate_result: pass", "quality_gate_result: fail"),
        ("\"merge_ready\":true", "\"merge_ready\":false"),
        ("from: codex", "from: gemini"),
        ("\"outbox\":\"codex\"", "\"outbox\":\"gemini\""),
        ("\"approved\"", "\"escalated\""),
    ] {
        let forged: Vec<String> = records
            .iter()
            .map(|record| record.replace(from, to))
            .collect();
        assert_ne!(forged, records, "{from}");
        assert_eq!(again(&forged), 8, "{from}");
    }

    // An approval of another commit does not count for this one, unless its message is changed too.
    let other = Paper::of(&self::approved(OTHER), &[]);
    let (header, records) = parts(&other);
    let (header, records) = (
        header.replace("\"records\":2", "\"records\":20"),
        further(&records),
    );
    let moved: Vec<String> = records
        .iter()
        .map(|record| {
            record.replace(
                &format!("\"commit\":\"{OTHER}\""),
                &format!("\"commit\":\"{HEAD}\""),
            )
        })
        .collect();
    assert_ne!(moved, records);
    assert_eq!(approved.with(sealed(&header, &moved).as_bytes()), 8);
}

#[test]
fn a_record_that_other_rules_judged_proves_only_what_these_rules_judge_as_well() {
    let paper = Paper::of(&approved(HEAD), &[]);
    let (header, records) = parts(&paper);
    let (header, records) = (
        header.replace("\"records\":2", "\"records\":20"),
        further(&records),
    );
    let with = |changes: &[(&str, &str)]| {
        let change = |record: &String| {
            changes.iter().fold(record.clone(), |record, (from, to)| {
                record.replace(from, to)
            })
        };
        let records: Vec<String> = records.iter().map(change).collect();
        let path = paper.directory.path().join("rules.txt");
        settled_tests::write(&path, &sealed(&header, &records));
        let output = verify(&path, HEAD, &[]);
        (output.status.code(), said(&output))
    };
    let record: serde_json::Value = serde_json::from_str(&records[0]).expect("JSON");
    let ours = format!("\"rules\":{}", record["rules"]);
    assert_eq!(with(&[(&ours, "\"rules\":1")]).0, Some(0));
    let (code, says) = with(&[(&ours, "\"rules\":99")]);
    assert_eq!(code, Some(8), "{says}");
    assert!(says.contains("judged by version 99 of the rules"), "{says}");
    let (code, says) = with(&[(&ours, "\"rules\":1"), ("\"approved\"", "\"escalated\"")]);
    assert_eq!(code, Some(8), "{says}");
    assert!(
        says.contains("it was judged by version 1 of the rules"),
        "{says}"
    );
}

#[test]
fn a_review_in_which_something_blocks_cannot_be_made_an_approval_by_leaving_records_out() {
    let paper = Paper::of(&eventful(), &[]);
    let (header, records) = parts(&paper);
    assert_eq!(paper.with(sealed(&header, &records).as_bytes()), 0);
    for at in 0..records.len() {
        let mut without = records.clone();
        let dropped = without.remove(at);
        let code = paper.with(sealed(&header, &without).as_bytes());
        // Records that affect no approval may be missing: a turn, a refusal, an event with the same head.
        let beside = ["turns", "refused", "pull"].map(|kind| format!("\"kind\":\"{kind}\""));
        assert!(
            code != 0 || beside.iter().any(|kind| dropped.contains(kind)),
            "{dropped}"
        );
    }
}

#[test]
fn no_byte_of_a_record_makes_a_head_approved_that_was_not_even_where_all_digests_fit() {
    let (header, records) = parts(&Paper::of(&approved(OTHER), &[]));
    let (header, records) = (
        header.replace("\"records\":2", "\"records\":20"),
        further(&records),
    );
    let passes = |records: &[String], head: &str| {
        let file = VerdictFile::read(sealed(&header, records).as_bytes()).ok()?;
        let proof = prove(&file).ok()?;
        let head = head.parse().expect("a commit");
        let asked = ApprovalQuestion {
            pr: "86".parse().expect("a number"),
            repo: None,
            reviewers: Vec::new(),
            head,
            allow_waiting: true,
        };
        ApprovalVerdict::of(proof.state(), &asked)
            .ok()
            .map(|verdict| verdict.passes)
    };
    assert_eq!(
        (passes(&records, OTHER), passes(&records, HEAD)),
        (Some(true), Some(false))
    );
    // A head that differs in one digit, so that one byte would be enough.
    let near = OTHER.replacen('1', "2", 1);
    let runner = ProptestConfig {
        cases: 1500,
        ..ProptestConfig::default()
    };
    let places: Vec<(usize, usize)> = records
        .iter()
        .enumerate()
        .flat_map(|(n, record)| {
            // Every position of the approved commit, and as many others.
            let named = record
                .match_indices(OTHER)
                .map(|(at, _)| at)
                .collect::<Vec<_>>();
            (0..record.len())
                .step_by(7)
                .chain(named.into_iter().flat_map(|at| at..at + 3))
                .map(move |at| (n, at))
        })
        .collect();
    proptest!(runner, |(place in 0..places.len(), with in "[0-9a-z\"]")| {
        let (n, at) = places[place];
        let mut other = records.clone();
        prop_assume!(other[n].is_char_boundary(at) && other[n].is_char_boundary(at + 1));
        other[n].replace_range(at..=at, &with);
        prop_assert_ne!(passes(&other, &near), Some(true), "record {} at {}: {}", n, at, with);
    });
}

/// Makes lines consistent again, as a forger with write access could: shares no code with the product.
fn sealed(header: &str, records: &[String]) -> String {
    let mut text = format!("settled verdict 1\nheader {header}\n");
    let mut chain = digest(&text);
    for record in records {
        let named = digest(record);
        chain = digest(&format!("{chain} judged {named}\n"));
        text += &format!("judged {named} {chain} {record}\n");
    }
    let count = records.len();
    text + &format!(
        "end {count} {}\n",
        digest(&format!("{chain} end {count}\n"))
    )
}

/// Gives the second record a later number, so that neither neighbour's digest binds it.
fn further(records: &[String]) -> Vec<String> {
    records
        .iter()
        .map(|record| record.replace("\"seq\":2", "\"seq\":9"))
        .collect()
}

fn digest(text: &str) -> String {
    let hex: String = Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}
