//! Agents whose home is retired, moved away or missing: people learn that their mail waits, and the command that helps.

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{names, wait};

use super::programs::{Hosts, done, question, refused};

/// The problems of a kind, each with its fix.
fn problems(host: &Mailroom, kind: &str) -> Vec<(String, String)> {
    let answer = host.json(&["problems"]);
    let all = answer["data"]["problems"].as_array().expect("problems");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let of_kind = all.iter().filter(|problem| problem["kind"] == kind);
    of_kind
        .map(|problem| (text(&problem["what"]), text(&problem["fix"]["run"])))
        .collect()
}

#[test]
fn mail_to_an_agent_whose_host_is_retired_is_a_problem_until_its_home_moves() {
    const WHY: &str = "codex is at home on host laptop, whose key was retired: no host reads its outbox, and messages to \
                       it wait";
    let hosts = Hosts::on_a_broker();
    let tower = &hosts.tower;
    let _tower = tower.serve();
    wait::until("the tower to know of the laptop", || {
        done(tower, &["host", "list"]).contains("codex")
    });
    done(
        tower,
        &["host", "retire-key", "laptop", "--reason", "stolen"],
    );
    let request =
        "send review_request --agent claude --to codex --pr 86 --branch b --diff-summary x";
    done(tower, &request.split(' ').collect::<Vec<_>>());
    let [(what, fix)] = &problems(tower, "no_home")[..] else {
        panic!("{}", said(&tower.run(&["problems"])));
    };
    assert_eq!(what, WHY);
    assert!(
        fix.starts_with("settled host move-home codex --to tower"),
        "{fix}"
    );
    let why = tower.json(&["why", "86"]);
    let why = &why["data"]["reviews"][0];
    assert_eq!(
        (&why["kind"], &why["missing"]),
        (&"home".into(), &WHY.into())
    );
    assert_eq!(why["fixes"][0]["run"], **fix);
    for words in [&["status"][..], &["problems"], &["why", "86"]] {
        let told = said(&tower.run(words));
        assert!(told.contains("host move-home codex --to tower"), "{told}");
    }

    done(tower, &["host", "move-home", "codex", "--to", "tower"]);
    wait::until("the request to come to its new home", || {
        !names(tower.agent("codex", "inbox")).is_empty()
    });
    assert_eq!(problems(tower, "no_home"), []);
}

#[test]
fn files_in_an_outbox_that_its_agent_moved_away_from_are_a_problem() {
    let hosts = Hosts::on_a_broker();
    let laptop = &hosts.laptop;
    done(laptop, &["host", "claim", "pi"]);
    done(laptop, &["host", "move-home", "pi", "--to", "tower"]);
    assert_eq!(problems(laptop, "mail_left"), []);
    laptop.post("pi", "q.yaml", &question("pi", "codex", "q"));
    let [(what, fix)] = &problems(laptop, "mail_left")[..] else {
        panic!("{}", said(&laptop.run(&["problems"])));
    };
    assert_eq!(
        what,
        "pi is at home on host tower: nobody sends the 1 file in its outbox here; move to agents/pi/outbox on host tower"
    );
    assert!(
        fix.starts_with("settled host move-home pi --to laptop"),
        "{fix}"
    );
    // No daemon would judge it here.
    assert_eq!(problems(laptop, "mail_unjudged"), []);
    let file = laptop.agent("pi", "outbox").join("q.yaml");
    std::fs::remove_file(file).expect("the file is there");
    assert_eq!(problems(laptop, "mail_left"), []);
}

#[test]
fn an_agent_without_a_home_is_told_the_command_that_gives_it_one() {
    let hosts = Hosts::on_a_repository();
    let tower = &hosts.tower;
    for directory in ["outbox", "inbox"] {
        std::fs::create_dir_all(tower.agent("gpt", directory)).expect("a mailbox");
    }
    let told = refused(tower, &["inbox", "--agent", "gpt"]);
    assert!(
        told.contains("gpt has no home on any host") && told.contains("settled host claim gpt"),
        "{told}"
    );
    let [(_, fix)] = &problems(tower, "no_home")[..] else {
        panic!("{}", said(&tower.run(&["problems"])));
    };
    assert!(fix.starts_with("settled host claim gpt"), "{fix}");
    done(tower, &["host", "claim", "gpt"]);
    done(tower, &["inbox", "--agent", "gpt"]);
    assert_eq!(problems(tower, "no_home"), []);
}
