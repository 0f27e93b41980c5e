//! Tests the text that people read about a scenario and a replay.

use std::path::Path;

use review::RULES;
use simulate::{Difference, Replay, ReviewDifference};

#[test]
fn a_transcript_shows_each_step_and_where_and_how_it_differs_from_what_is_expected() {
    let text = "title: a title\nsteps:\n  - send: question\n    expect: duplicate\n  - wait: 2h\nfinal:\n  - \"#86 approved\"\n";
    let file = Path::new("x.yaml");
    let played = simulate::simulate(text.as_bytes(), file).expect("readable");
    let expected = "x.yaml: a title\n  \
          1  2026-02-13T10:00:00Z  question claude -> codex\n     \
             accepted -> delivered to codex\n  \
          2  2026-02-13T12:00:00Z  wait 7200 s\n\
        final\n\
        x.yaml:4: step 1: expected: duplicate\n    \
            got: accepted -> delivered to codex\n\
        x.yaml:3: step 1: not expected: accepted -> delivered to codex\n    \
            got: accepted -> delivered to codex\n\
        x.yaml:7: final: expected: #86 approved\n    \
            got: nothing\n";
    assert_eq!(simulate::text(&played, file), expected);
}

#[test]
fn a_replay_shows_both_decisions_and_counts_what_is_the_same() {
    let at = "2026-02-13T10:00:00.000Z".to_owned();
    let line = |text: &str| vec![text.to_owned()];
    let replay = Replay {
        records: 5,
        same: 2,
        different: vec![
            Difference {
                seq: Some(3),
                rules: Some(1),
                at: at.clone(),
                id: Some("l-1".to_owned()),
                then: line("accepted"),
                now: line("refused invocation_closed"),
            },
            Difference {
                seq: None,
                rules: None,
                at,
                id: None,
                then: Vec::new(),
                now: line("review #86 claude -> codex: escalated"),
            },
        ],
        other_rules: 1,
        not_replayed: vec![4],
        reviews: vec![ReviewDifference {
            review: "#86 claude -> codex".to_owned(),
            then: Some("approved".to_owned()),
            now: None,
        }],
    };
    let expected = format!(
        "3  2026-02-13T10:00:00.000Z  l-1  judged by version 1 of the rules, now by {RULES}\n  \
           then  accepted\n  \
           now   refused invocation_closed\n\
         -  2026-02-13T10:00:00.000Z\n  \
           then  nothing\n  \
           now   review #86 claude -> codex: escalated\n\
         at the end: #86 claude -> codex\n  \
           then  approved\n  \
           now   nothing\n\
         5 records, 2 the same, 2 different, 1 that cannot be replayed; 1 reviews end differently\n\
         1 records were judged by another version of the rules; this program has {RULES}\n"
    );
    assert_eq!(simulate::replay_text(&replay), expected);
    let same = Replay {
        records: 2,
        same: 2,
        ..Replay::default()
    };
    assert_eq!(
        simulate::replay_text(&same),
        "2 records, 2 the same, 0 different, 0 that cannot be replayed; 0 reviews end differently\n"
    );
}
