//! The model of the whole mailroom agrees with the commands, and following the ledger gives the same model as reading
//! it from the start.

use cockpit::Follower;
use serde_json::{Value, json};
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::seed;

/// A mailroom with the packet of the first round, which no daemon serves.
fn mailroom() -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    mailroom
}

/// A step of the story.
type Step = fn(&Mailroom);

fn post(mailroom: &Mailroom, number: usize) {
    let post = &seed::review()[number];
    mailroom.post(post.from, post.file, &post.text);
    assert!(mailroom.once().status.success());
}

/// A story with everything a model shows: a waiting message, answers, a refusal, a moving head, and a person.
const STORY: [(&str, Step); 10] = [
    ("nothing", |_| ()),
    ("a request waits", |mailroom| {
        mailroom.post("claude", "request-1.yaml", &seed::review()[0].text);
    }),
    ("it is judged", |mailroom| {
        assert!(mailroom.once().status.success());
    }),
    ("it is taken", |mailroom| {
        assert!(mailroom.run(&["take", "--pr", "86"]).status.success());
    }),
    ("feedback", |mailroom| post(mailroom, 1)),
    ("a refused report", |mailroom| {
        let wrong = seed::review()[2].text.replace("round: 1", "round: 7");
        mailroom.post("claude", "addressed 1.yaml", &wrong);
        assert_eq!(mailroom.once().status.code(), Some(7));
    }),
    ("the report", |mailroom| post(mailroom, 2)),
    ("the next request", |mailroom| post(mailroom, 3)),
    ("the approval", |mailroom| post(mailroom, 4)),
    ("another head", |mailroom| {
        let moved = mailroom.run(&["pr", "synchronize", "86", "--head", "0dd5eed"]);
        assert!(moved.status.success(), "{}", said(&moved));
    }),
];

fn model(mailroom: &Mailroom) -> Value {
    mailroom.json(&["watch", "--once", "--review", "86"])["data"].take()
}

#[test]
fn the_model_says_what_the_commands_say() {
    let mailroom = mailroom();
    for (step, act) in STORY {
        act(&mailroom);
        let model = model(&mailroom);
        assert_eq!(model["status"], mailroom.status(), "{step}");
        let problems = mailroom.json(&["problems"]);
        assert_eq!(model["problems"], problems["data"]["problems"], "{step}");
        let Some(selected) = model["selected"].as_array().and_then(|all| all.first()) else {
            continue;
        };
        let why = &mailroom.json(&["why", "86"])["data"]["reviews"][0];
        assert_eq!(selected["why"], *why, "{step}");
        let row = &model["status"]["reviews"][0];
        assert_eq!(selected["row"], *row, "{step}");
        let threads = mailroom.run(&["threads", "86", "--agent", "claude", "--json"]);
        let threads: Value = serde_json::from_slice(&threads.stdout).expect("JSON");
        // `--agent` adds its own name to the commands.
        let told = &threads["data"]["reviews"][0]["threads"];
        for (ours, theirs) in selected["threads"]["threads"]
            .as_array()
            .expect("threads")
            .iter()
            .zip(told.as_array().expect("threads"))
        {
            for field in [
                "id",
                "state",
                "evidence",
                "recommendation",
                "reported",
                "replies_left",
            ] {
                assert_eq!(ours[field], theirs[field], "{step}: {field}");
            }
        }
        // The first request names no commit.
        if let Some(head) = selected["gate"]["head"].as_str() {
            let check = mailroom.json(&["gate", "check", "--pr", "86", "--head", head]);
            assert_eq!(selected["gate"]["check"], check["data"], "{step}");
        }
        let first = &model["needs"][0];
        if !why["missing"].is_null() {
            assert_eq!(first["missing"], why["missing"], "{step}");
            assert_eq!(first["fix"], why["fixes"][0], "{step}");
            assert_eq!(first["mover"], why["actor"], "{step}");
        }
    }
}

#[test]
fn a_model_that_follows_says_what_a_new_one_says() {
    let mailroom = mailroom();
    let spell = |_: Option<&_>, words: &str| format!("settled {words}");
    let mut following = Follower::open(mailroom.root()).expect("a ledger");
    for (step, act) in STORY {
        let before = following.seq();
        act(&mailroom);
        let now = workspace::clock::now();
        let has_changed = following.refresh().expect("a ledger");
        assert_eq!(has_changed, following.seq() > before, "{step}");
        let new = Follower::open(mailroom.root()).expect("a ledger");
        let told = |follower: &Follower| {
            let mut overview = json!(follower.overview(now, &spell));
            // The model does not depend on where reading begins.
            overview["status"]["ledger"]["snapshot"].take();
            let keys: Vec<_> = follower
                .status()
                .index
                .state()
                .reviews()
                .map(|(key, _)| key)
                .collect();
            let details: Vec<_> = keys
                .into_iter()
                .map(|key| follower.review(key, now, &spell))
                .collect();
            json!([overview, details])
        };
        assert_eq!(told(&following), told(&new), "{step}");
    }
    let detail = &model(&mailroom)["selected"][0];
    let stops = |round: usize| -> Vec<&str> {
        let stops = detail["rounds"][round]["stops"].as_array().expect("stops");
        stops
            .iter()
            .filter_map(|stop| stop["stop"].as_str())
            .collect()
    };
    assert_eq!(stops(0), ["request", "taken", "feedback", "addressed"]);
    assert_eq!(stops(1), ["request", "lgtm"]);
    let kinds: Vec<&str> = detail["rounds"][0]["events"]
        .as_array()
        .expect("events")
        .iter()
        .filter_map(|event| event["kind"].as_str())
        .collect();
    let all = [
        "review_request",
        "taken",
        "review_feedback",
        "refused",
        "review_addressed",
    ];
    assert_eq!(kinds, all);
    let history = &model(&mailroom)["history"];
    assert_eq!(history["rounds_to_approval"], json!({"2": 1}));
    let score = &history["reviewers"][0];
    assert_eq!(
        [
            &score["first_verdicts"],
            &score["first_approvals"],
            &score["answers"]
        ],
        [&json!(1), &json!(0), &json!(2)]
    );
}
