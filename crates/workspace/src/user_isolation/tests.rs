//! Tests who gets which directory, and who cannot be kept apart.

use crate::config::{Config, TEMPLATE};

use super::*;

fn users(agents: &[(&str, u32)]) -> BTreeMap<AgentName, User> {
    let user = |id| User { uid: id, gid: id };
    agents
        .iter()
        .map(|(name, id)| (AgentName::new(*name).expect("a name"), user(*id)))
        .collect()
}

#[test]
fn the_config_keeps_its_text_and_names_each_user_once() {
    let users = users(&[("claude", 7), ("co.dex", 8)]);
    let before = format!(
        "{TEMPLATE}\n[agents.claude]\nroles = [\"author\"]\nuid = 3\n# end\n[agents.\"co.dex\"]\n"
    );
    let text = with_users(&before, &users);
    assert_eq!(with_users(&text, &users), text, "writing is idempotent");
    let config = Config::parse(&text, Path::new("settled.toml")).expect("a config");
    assert_eq!(config.users().into_values().collect::<Vec<_>>(), [7, 8]);
    assert!(
        text.contains("roles = [\"author\"]\nuid = 7\n# end\n[agents.\"co.dex\"]\nuid = 8\n"),
        "{text}"
    );
}

#[test]
fn users_that_cannot_be_isolated_are_named() {
    let fault = |daemon, agents: &[(&str, u32)]| {
        let isolated = IsolatedUsers {
            daemon: User {
                uid: daemon,
                gid: daemon,
            },
            agents: users(agents),
        };
        isolated.fault(|_, _| Ok(false))
    };
    assert_eq!(fault(0, &[("claude", 7), ("codex", 8)]), None);
    assert!(
        fault(0, &[("claude", 7), ("codex", 7)]).is_some_and(|why| why.contains("same user 7"))
    );
    assert!(fault(7, &[("claude", 7)]).is_some());
    assert!(fault(5, &[("claude", 0)]).is_some_and(|why| why.contains("root")));
    let shared = User { uid: 8, gid: 7 };
    let mut agents = users(&[("claude", 7)]);
    agents.insert(AgentName::new("codex").expect("a name"), shared);
    let isolated = IsolatedUsers {
        daemon: ROOT,
        agents,
    };
    assert!(
        isolated
            .fault(|_, _| Ok(false))
            .is_some_and(|why| why.contains("share a group"))
    );
    let isolated = IsolatedUsers {
        daemon: ROOT,
        agents: users(&[("claude", 7), ("codex", 8)]),
    };
    let listed = isolated.fault(|user, gid| Ok((user.uid, gid) == (8, 7)));
    assert!(listed.is_some_and(|why| why.contains("share a group")));
    let unknown = isolated.fault(|_, _| Err(io::ErrorKind::TimedOut.into()));
    assert!(unknown.is_some_and(|why| why.starts_with("cannot tell")));
}

/// Each directory with its user, group and mode, for a daemon 5:50 and an agent 7:70.
const RULES: &str = "\
. 0:0 755
.settled 5:50 700
agents 0:0 755
settled.toml 0:50 640
agents/claude 5:70 750
agents/claude/outbox 7:50 2770
agents/claude/inbox 5:70 770
agents/claude/sent 5:70 750
agents/claude/dead_letter 5:70 750
agents/claude/archive 7:50 2750
packets 0:0 755
packets/findings 5:50 3777
packets/briefs 5:50 755
packets/handoff 5:50 755
events 0:0 755
events/pr 5:50 755
";

#[test]
fn an_agent_gets_into_its_own_mailboxes_and_nobody_but_root_replaces_a_directory() {
    let isolated = IsolatedUsers {
        daemon: User { uid: 5, gid: 50 },
        agents: [("claude".parse().expect("a name"), User { uid: 7, gid: 70 })].into(),
    };
    let lines = isolated.rules().into_iter().map(|rule| {
        let Ownership { uid, gid, mode } = rule.ownership;
        let path = match rule.path.as_os_str().is_empty() {
            true => Path::new(".").display(),
            false => rule.path.display(),
        };
        format!("{path} {uid}:{gid} {mode:o}\n")
    });
    assert_eq!(lines.collect::<String>(), RULES);
}

#[test]
fn users_with_groups_of_their_own_are_isolated() {
    let isolated = |agents: &[(&str, u32, u32)]| IsolatedUsers {
        daemon: User { uid: 5, gid: 50 },
        agents: agents
            .iter()
            .map(|&(name, uid, gid)| (name.parse().expect("a name"), User { uid, gid }))
            .collect(),
    };
    let fault = |agents: &[_]| isolated(agents).fault(|_, _| Ok(false));
    assert_eq!(fault(&[("claude", 7, 70), ("codex", 8, 80)]), None);
    for (agents, why) in [
        (&[("claude", 7, 0)], "claude would be root (7:0)"),
        (&[("claude", 0, 7)], "claude would be root (0:7)"),
        (
            &[("claude", 5, 70)],
            "the daemon and claude would be the same user 5",
        ),
        (
            &[("claude", 7, 50)],
            "the daemon (5:50) and claude (7:50) share a group",
        ),
    ] {
        let said = fault(agents).expect(why);
        assert!(said.starts_with(why), "{said}");
    }
    // Either of two users may be in the group of the other.
    for (uid, gid) in [(7, 80), (8, 70), (5, 70), (7, 50)] {
        let agents = isolated(&[("claude", 7, 70), ("codex", 8, 80)]);
        let said = agents.fault(|user, group| Ok((user.uid, group) == (uid, gid)));
        assert!(
            said.is_some_and(|why| why.contains("share a group")),
            "{uid} in {gid}"
        );
    }
}

/// The rule of `folder`, owned by the user who runs this test, and a tree with entries of other modes in it.
fn broken_tree(contents: Contents) -> (tempfile::TempDir, OwnedTree, DirectoryRule) {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
    let root = tempfile::tempdir().expect("a directory");
    std::fs::create_dir_all(root.path().join("folder/below")).expect("directories");
    for (name, mode) in [
        ("a", 0o600),
        ("b", 0o2644),
        ("below/c", 0o444),
        ("below/d", 0o600),
    ] {
        let path = root.path().join("folder").join(name);
        std::fs::write(&path, "").expect("a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("permissions");
    }
    let modes = [("folder", 0o700), ("folder/below", 0o755)];
    for (name, mode) in modes {
        let path = root.path().join(name);
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("permissions");
    }
    let data = root.path().metadata().expect("a directory");
    let me = User {
        uid: data.uid(),
        gid: data.gid(),
    };
    let tree = OwnedTree::open(root.path()).expect("a tree");
    (root, tree, rule("folder", me, 0o755, "a test", contents))
}

#[test]
fn a_rule_counts_and_mends_what_breaks_it() {
    for (contents, broken, modes) in [
        // Only the directory itself.
        (
            Contents::Left,
            1,
            [0o755, 0o600, 0o2644, 0o755, 0o444, 0o600],
        ),
        // Also the files in it that others could not read, but nothing below.
        (
            Contents::Readable,
            3,
            [0o755, 0o644, 0o644, 0o755, 0o444, 0o600],
        ),
        // All of it: every file but one has another mode.
        (
            Contents::Owned(0o600),
            3,
            [0o755, 0o600, 0o600, 0o755, 0o600, 0o600],
        ),
    ] {
        let (_root, tree, rule) = broken_tree(contents);
        assert_eq!(rule.broken(&tree).expect("a count"), broken, "{contents:?}");
        assert_eq!(
            rule.enforce(&tree).expect("a count"),
            broken,
            "{contents:?}"
        );
        let mode = |path: &str| {
            let entry = tree.ownership(path.as_ref()).expect("readable");
            entry.expect("there").mode
        };
        let is = [
            "folder",
            "folder/a",
            "folder/b",
            "folder/below",
            "folder/below/c",
            "folder/below/d",
        ];
        assert_eq!(is.map(mode), modes, "{contents:?}");
        assert_eq!(rule.broken(&tree).expect("a count"), 0, "{contents:?}");
    }
}

#[test]
fn a_directory_that_is_missing_breaks_its_rule() {
    let (_root, tree, mut rule) = broken_tree(Contents::Readable);
    rule.path = "missing".into();
    assert_eq!(rule.broken(&tree).expect("a count"), 1);
    rule.enforce(&tree).expect_err("nothing is created");
}
