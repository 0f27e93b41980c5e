//! Tests what a config says, and the words in which a wrong one is refused.

mod values;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use message_schema::id::AgentName;
use message_schema::packet::Severity;
use review::{HandoffMode, Profile, RuntimeClock, ThreadMode};

use super::{Config, ConfigError, FILE, TEMPLATE, read_text};

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, Path::new("settled.toml")).map_err(|error| error.to_string())
}

#[test]
fn the_template_is_the_default() {
    assert_eq!(parse(TEMPLATE), Ok(Config::default()));
}

#[test]
fn the_template_shows_every_key_with_its_default() {
    let live: String = TEMPLATE
        .lines()
        .map(|line| line.strip_prefix("#: ").unwrap_or(line))
        .fold(String::new(), |text, line| text + line + "\n");
    let config = parse(&live).expect("the commented keys are valid");
    assert_eq!(
        Config {
            agents: BTreeMap::new(),
            ..config.clone()
        },
        Config::default()
    );
    assert_eq!(config.agents.len(), 1, "the template shows an agent");
    // The compiler cannot check this list: add every new key of `Config`.
    let keys = [
        "profile",
        "runtime_clock",
        "threads",
        "late_findings",
        "reviewers",
        "[rounds]",
        "max",
        "[gate]",
        "require_validation",
        "require_actions",
        "validation_commands",
        "[handoff]",
        "mode",
        "threshold",
        "categories",
        "bots",
        "verify_agents",
        "target",
        "[handoff.routes]",
        "[limits]",
        "messages_per_hour",
        "files_per_hour",
        "open_reviews",
        "[budget]",
        "per_review",
        "per_day",
        "per_agent",
        "[notify]",
        "webhook",
        "webhook_secret_file",
        "desktop",
        "quiet_hours",
        "stopped_after_s",
        "[metrics]",
        "listen",
        "roles",
        "uid",
        "[runner]",
        "concurrent",
        "warn_s",
        "validation_s",
        "tree_mib_max",
        "pass",
        "fail",
        "done",
        "command",
        "workdir",
        "sandbox",
        "checkout",
        "leave_out",
        "env",
        "prompt",
        "stdin",
        "output",
    ];
    for key in keys {
        let line = |line: &str| {
            line.strip_prefix("#: ")
                .is_some_and(|live| live.starts_with(key))
        };
        assert!(
            TEMPLATE.lines().any(line),
            "the template does not show {key}"
        );
    }
}

#[test]
fn an_unknown_key_is_named_with_its_place() {
    let error = parse("[rounds]\nmax = 2\nmaks = 3\n").expect_err("unknown");
    assert!(
        error.starts_with("settled.toml:3:1: config_invalid: unknown field `maks`"),
        "{error}"
    );
}

#[test]
fn four_rounds_are_refused_with_their_place() {
    let error = parse("[rounds]\nmax = 4\n").expect_err("out of range");
    assert!(
        error.starts_with("settled.toml:2:7: config_invalid: rounds.max is 4"),
        "{error}"
    );
}

#[test]
fn a_value_of_another_kind_is_told_in_words_with_its_place() {
    for (text, said) in [
        (
            "[rounds]\nmax = \"2\"\n",
            "settled.toml:2:7: config_invalid: rounds.max is not an integer, expected an integer, 1, 2 or 3",
        ),
        (
            "[limits]\nmessages_per_hour = 1.5\n",
            "settled.toml:2:21: config_invalid: limits.messages_per_hour is not an integer, expected an integer, 1 to 10000",
        ),
        (
            "rounds = 2\n",
            "settled.toml:1:10: config_invalid: invalid type: integer `2`, expected a table",
        ),
        (
            "[agents]\ncodex = 1\n",
            "settled.toml:2:9: config_invalid: invalid type: integer `1`, expected a table",
        ),
    ] {
        assert_eq!(parse(text), Err(said.to_owned()));
    }
}

#[test]
fn a_blank_command_could_never_be_recorded_and_is_refused() {
    let error = parse("[gate]\nvalidation_commands = [\"make\", \" \"]\n").expect_err("blank");
    assert_eq!(
        error,
        "settled.toml:2:23: config_invalid: command 2 is blank, expected a command line"
    );
}

#[test]
fn a_word_of_the_runner_says_one_thing() {
    let expected = "two of done, pass and fail of [runner] are the same word, expected three";
    for word in ["PASS", "pass"] {
        let error = parse(&format!("[runner]\nfail = \"{word}\"\n"));
        assert_eq!(
            error.expect_err("who gives up would almost approve"),
            format!("settled.toml:1:1: config_invalid: {expected}")
        );
    }
}

#[test]
fn the_daemon_is_no_agent() {
    let error = parse("[agents.settled]\nroles = [\"author\"]\n").expect_err("the daemon");
    assert_eq!(
        error,
        "settled.toml:1:9: config_invalid: `settled` is the daemon's name, so no agent may have it"
    );
}

#[test]
fn an_entry_without_a_mailbox_is_a_stranger_and_no_error() {
    let config = parse("[agents.codex]\n[agents.codx]\n").expect("valid");
    let agents = ["claude", "codex"].map(|name| AgentName::new(name).expect("a name"));
    let strangers: Vec<&str> = config
        .strangers(&agents)
        .into_iter()
        .map(AgentName::as_str)
        .collect();
    assert_eq!(strangers, ["codx"]);
}

#[test]
fn bytes_are_read_as_a_config_or_refused_at_their_place() {
    let read = |bytes| Config::from_bytes(bytes, Path::new("settled.toml"));
    let config = read(b"reviewers = [\"codex\"]\n").expect("a config");
    assert_eq!(config.reviewers.len(), 1);
    let error = read(b"# gro\xc3\x9f\n# x\xff\n").expect_err("not UTF-8");
    let said = "settled.toml:2:4: config_invalid: the bytes from here on are not UTF-8 text";
    assert_eq!(error.to_string(), said);
}

#[test]
fn an_agent_that_could_not_exist_is_refused() {
    let error = parse("[agents.\"../x\"]\nroles = [\"author\"]\n").expect_err("not a name");
    assert!(error.contains("agent name"), "{error}");
}

#[test]
fn every_key_of_a_handoff_is_read() {
    let text = "profile = \"advisory\"\nruntime_clock = \"delivery\"\n[handoff]\nmode = \"threshold\"\nthreshold = \"P2\"\n\
                categories = [\"security\"]\nbots = [\"renovate[bot]\"]\nverify_agents = [\"fixer\"]\ntarget = \"claude\"\n\
                [handoff.routes]\nsecurity = \"codex\"\n";
    let config = parse(text).expect("valid");
    let policy = config.policy([]);
    assert_eq!(
        (policy.profile, policy.runtime_clock),
        (Profile::Advisory, RuntimeClock::Delivery)
    );
    let handoff = &policy.handoff;
    assert_eq!(
        (handoff.mode, handoff.threshold),
        (HandoffMode::Threshold, Severity::P2)
    );
    assert!(handoff.categories.contains("security") && handoff.bots.contains("renovate[bot]"));
    let strangers: Vec<&str> = config
        .strangers(&[])
        .into_iter()
        .map(AgentName::as_str)
        .collect();
    assert_eq!(
        strangers,
        ["claude", "codex", "fixer"],
        "target, route and verify agent"
    );
    assert_eq!(
        handoff.target.as_ref().map(AgentName::as_str),
        Some("claude")
    );
    assert_eq!(handoff.routes["security"].as_str(), "codex");
    assert_eq!(handoff.verify_agents.len(), 1);
}

#[test]
fn an_empty_target_is_nobody() {
    assert_eq!(parse("[handoff]\ntarget = \"\"\n"), Ok(Config::default()));
}

#[test]
fn a_wrong_word_is_told_with_its_key_and_what_would_have_been_accepted() {
    for (text, said) in [
        (
            "profile = \"strict\"\n",
            "1:11: config_invalid: profile is \"strict\", expected \"gate\" or \"advisory\"",
        ),
        (
            "runtime_clock = 1\n",
            "1:17: config_invalid: runtime_clock is not a text, expected \"take\" or \"delivery\"",
        ),
        (
            "threads = \"x\"\n",
            "1:11: config_invalid: threads is \"x\", expected \"inferred\" or \"explicit\"",
        ),
        (
            "late_findings = \"x\"\n",
            "1:17: config_invalid: late_findings is \"x\", expected \"block\" or \"defer\"",
        ),
        (
            "[handoff]\nmode = \"on\"\n",
            "2:8: config_invalid: handoff.mode is \"on\", expected \"off\", \"threshold\" or \"full\"",
        ),
        (
            "[handoff]\nthreshold = \"p1\"\n",
            "2:13: config_invalid: handoff.threshold is \"p1\", expected \"P0\", \"P1\", \"P2\" or \"P3\"",
        ),
        (
            "[handoff]\ncategories = [\"a\", \"\"]\n",
            "2:14: config_invalid: handoff.categories: category 2 is blank, expected the kind of a finding",
        ),
        (
            "[handoff]\nbots = [\" \"]\n",
            "2:8: config_invalid: handoff.bots: name 1 is blank, expected a name at the forge",
        ),
        (
            "[handoff]\ntarget = \"settled\"\n",
            "2:10: config_invalid: handoff.target is `settled`, expected the name of an agent; `settled` is the daemon's name",
        ),
        (
            "[handoff]\nmodus = \"off\"\n",
            "2:1: config_invalid: unknown field `modus`",
        ),
        (
            "[handoff.routes]\n\" \" = \"codex\"\n",
            "1:1: config_invalid: handoff.routes has a blank category, expected the kind of a finding",
        ),
        (
            "[handoff]\nverify_agents = [\"a b\"]\n",
            "2:17: config_invalid: handoff.verify_agents names `a b`, ",
        ),
        (
            "[handoff.routes]\nsecurity = \"../x\"\n",
            "2:12: config_invalid: handoff.routes leads to `../x`, ",
        ),
    ] {
        let error = parse(text).expect_err("wrong");
        assert!(
            error.starts_with(&format!("settled.toml:{said}")),
            "{text}{error}"
        );
    }
}

#[test]
fn a_byte_order_mark_stands_in_no_column() {
    for wrong in ["polim", "\tx = ", "profile = 1", "a\nb"] {
        let marked = format!("\u{feff}{wrong}");
        assert_eq!(parse(&marked), parse(wrong), "{wrong:?}");
    }
}

#[test]
fn a_list_of_reviewers_ends_with_a_person_whether_it_says_so_or_not() {
    let agents = ["codex", "gemini"].map(|name| AgentName::new(name).expect("a name"));
    for list in [
        r#"reviewers = ["codex", "gemini", "person"]"#,
        r#"reviewers = ["codex", "gemini"]"#,
    ] {
        let config = parse(list).expect("a config");
        assert_eq!(config.reviewers, agents);
        // An agent without a mailbox cannot be asked.
        let policy = config.policy([agents[1].clone()]);
        assert_eq!(policy.reviewers, [agents[1].clone()]);
    }
    for wrong in [
        r#"reviewers = ["person", "codex"]"#,
        r#"reviewers = ["codex", "codex"]"#,
        r#"reviewers = ["co dex"]"#,
        r#"reviewers = "codex""#,
    ] {
        let why = parse(wrong).expect_err(wrong);
        assert!(why.contains("expected a list of agents"), "{why}");
    }
}

#[test]
fn a_sandbox_is_on_off_or_a_table_of_what_its_command_may_use() {
    let agent = |sandbox: &str| parse(&format!("[agents.codex]\nsandbox = {sandbox}"));
    let section = |sandbox: &str| {
        let config = agent(sandbox).expect("a valid section");
        config
            .agents
            .into_values()
            .next()
            .and_then(|agent| agent.sandbox)
    };
    assert_eq!(section("false"), None);
    assert_eq!(section("true"), section("{}"));
    assert_ne!(section("true"), section("{ network = [\"*\"] }"));
    for (sandbox, found) in [
        (
            "1",
            "invalid type: integer `1`, expected true, false or a table with `network`, `reads` and `env`",
        ),
        (
            "{ reads = [\"key\"] }",
            "sandbox.reads names `key`, expected a list of whole paths, or of paths that begin with `~/`",
        ),
        (
            "{ reads = [\"/srv\", \"//usr/../.\"] }",
            "sandbox.reads names the root directory, and a sandbox hides the rest of the machine from its command",
        ),
        (
            "{ network = [\"https://a.b\"] }",
            "sandbox.network: `https://a.b` is not a host, expected a name such as `api.example.com`, `*.example.com` or `localhost:8080`",
        ),
        (
            "{ network = [\"*\", \"a.b\"] }",
            "sandbox.network: `*` is not a host",
        ),
        (
            "{ env = [\"A=b\"] }",
            "sandbox.env names `A=b`, expected a list of names of variables",
        ),
        ("{ env = \"A\" }", "sandbox.env is not a list of texts"),
        ("{ nets = [] }", "unknown field `nets`"),
    ] {
        let error = agent(sandbox).expect_err(sandbox);
        assert!(error.contains(found), "{sandbox}: {error}");
    }
}

#[test]
fn what_is_left_out_is_named_by_plain_names() {
    let agent = |names: &str| parse(&format!("[agents.codex]\nleave_out = {names}"));
    assert!(agent("[\"GEMINI.md\", \".gemini\"]").is_ok());
    for (names, found) in [
        ("\"a\"", "leave_out is not a list of names"),
        ("[\"\"]", "leave_out names ``"),
        ("[\"a/b\"]", "leave_out names `a/b`"),
        ("[\"a\\nb\"]", "leave_out names `a\\nb`"),
    ] {
        let error = agent(names).expect_err(names);
        assert!(error.contains(found), "{names}: {error}");
    }
}

#[test]
fn the_policy_is_what_the_config_says_about_the_agents_that_have_a_mailbox() {
    let config = parse(
        "threads = \"explicit\"\nreviewers = [\"codex\", \"pi\"]\n[agents.claude]\nroles = [\"author\"]\nvendor = \"a\"\n\
         [agents.codex]\nvendor = \"b\"\n[agents.pi]\nroles = [\"reviewer\"]\n[rounds]\nmax = 3\n",
    )
    .expect("valid");
    let agent = |name: &str| AgentName::new(name).expect("a name");
    let policy = config.policy(["claude", "codex", "gpt"].map(agent));
    let roles = |name: &str| policy.agents[&agent(name)].len();
    assert_eq!(policy.agents.len(), 3);
    assert_eq!(["claude", "codex", "gpt"].map(roles), [1, 0, 0]);
    assert_eq!(policy.reviewers, [agent("codex")]);
    assert_eq!(policy.rounds.get(), 3);
    let vendors: Vec<(&str, &str)> = policy
        .vendors
        .iter()
        .map(|(name, vendor)| (name.as_str(), vendor.as_str()))
        .collect();
    assert_eq!(vendors, [("claude", "a"), ("codex", "b")]);
    assert_ne!(policy.threads, ThreadMode::default());
}

#[test]
fn a_shared_log_needs_the_names_of_the_workspace_and_of_this_host() {
    let shared = |keys: &str| {
        parse(&format!("[ledger]\n{keys}"))
            .expect("valid")
            .ledger
            .shared()
    };
    let (workspace, host) = ("workspace = \"w\"\n", "host = \"tower\"\n");
    assert_eq!(shared(&format!("{workspace}{host}")), Ok(None));
    assert_eq!(
        shared(&format!("log = \"l\"\n{host}")),
        Err("ledger.workspace")
    );
    assert_eq!(
        shared(&format!("log = \"l\"\n{workspace}")),
        Err("ledger.host")
    );
    let all = shared(&format!("log = \"l\"\n{workspace}{host}"));
    let all = all.expect("no key is missing").expect("a shared log");
    assert_eq!(
        (all.log.as_str(), all.workspace.as_str(), all.host.as_str()),
        ("l", "w", "tower")
    );
}

#[test]
fn a_sandbox_has_the_paths_and_variables_of_its_section_and_those_of_its_agent() {
    let config = parse("[agents.pi.sandbox]\nreads = [\"/srv\", \"~/keys\"]\nenv = [\"LANG\"]\n");
    let section = config.expect("valid").agents.into_values().next();
    let section = section.and_then(|agent| agent.sandbox).expect("a sandbox");
    let own = "TOKEN".to_owned();
    let sandbox = section.around(Path::new("/w"), [&own].into_iter());
    let home = std::env::var_os("HOME").unwrap_or_default();
    assert_eq!(sandbox.root, Path::new("/w"));
    assert_eq!(
        sandbox.reads,
        [Path::new("/srv"), &Path::new(&home).join("keys")]
    );
    assert_eq!(
        sandbox.env.into_iter().collect::<Vec<_>>(),
        ["LANG", "TOKEN"]
    );
}

#[test]
fn a_config_is_a_small_regular_file_of_text_or_missing() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join(FILE);
    let is_default = || Config::load(root.path()).is_ok_and(|config| config == Config::default());
    let refusals = || {
        let read = Config::load(root.path()).map(drop);
        let read = read.expect_err("no config").to_string();
        [read, read_text(&path).expect_err("no config").to_string()]
    };
    assert!(is_default(), "a missing file");
    assert!(read_text(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound));

    std::fs::write(&path, "[rounds]\nmax = 3\n").expect("a file");
    assert!(!is_default());
    assert_eq!(read_text(&path).expect("a text"), "[rounds]\nmax = 3\n");
    std::fs::write(&path, b"# \xff").expect("a file");
    let [read, text] = refusals();
    assert!(
        read.contains(":1:3: config_invalid: the bytes from here on"),
        "{read}"
    );
    assert!(text.contains("utf-8"), "{text}");

    let expected = "expected a regular file of at most 1048576 bytes";
    std::fs::write(&path, " ".repeat(1 << 20)).expect("a file");
    assert!(is_default());
    std::fs::write(&path, " ".repeat((1 << 20) + 1)).expect("a file");
    assert!(refusals().iter().all(|why| why.contains(expected)));
    std::fs::remove_file(&path).expect("removed");
    std::fs::create_dir(&path).expect("a directory");
    assert!(refusals().iter().all(|why| why.contains(expected)));
    std::fs::remove_dir(&path).expect("removed");
    std::os::unix::fs::symlink("nowhere", &path).expect("a link");
    assert!(Config::load(root.path()).is_err_and(|error| error.to_string().contains(expected)));

    // A file has no config in it, and that is no missing one.
    let file = root.path().join("file");
    std::fs::write(&file, "").expect("a file");
    assert!(matches!(
        Config::load(&file),
        Err(ConfigError::Unreadable { .. })
    ));
}
