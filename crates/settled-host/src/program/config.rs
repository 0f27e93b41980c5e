//! Writes into `settled.toml` what joining decided, and keeps a person's comments.

use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, value};
use views::exit::Exit;
use views::failure::Failure;
use workspace::atomic_file;
use workspace::config::{self, Config, FILE, OF_AN_AGENT, OF_ONE_HOST, SharedLog};

/// The keys of `[ledger]` that joining writes.
const KEYS: [&str; 3] = ["log", "workspace", "host"];

/// Writes the place of the shared ledger into `[ledger]`; removes it if this host stops sharing.
pub(super) fn write_log(root: &Path, shared: Option<&SharedLog>) -> Result<(), Failure> {
    change(root, |document| {
        let is_new = !document.contains_key("ledger");
        let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
        let ledger = section(document, "ledger");
        for key in KEYS {
            ledger.remove(key);
        }
        if let Some(shared) = shared {
            ledger["log"] = value(&shared.log);
            ledger["workspace"] = value(&shared.workspace);
            ledger["host"] = value(shared.host.as_str());
        }
        if is_new && !ledger.is_empty() && !trailing.trim().is_empty() {
            // Comments at the end of the file stay above the new section.
            ledger
                .decor_mut()
                .set_prefix(format!("{}\n\n", trailing.trim_end()));
            document.set_trailing("");
        } else if ledger.is_empty() {
            let prefix = ledger.decor().prefix().and_then(|prefix| prefix.as_str());
            let above = prefix.unwrap_or_default().to_owned();
            document.remove("ledger");
            document.set_trailing(above + &trailing);
        }
    })
}

/// Writes the text that settled.toml had before a join.
pub(super) fn put_back(root: &Path, text: &str) -> Result<(), Failure> {
    let path = root.join(FILE);
    atomic_file::replace(&path, text)
        .map_err(|error| Failure::plain(Exit::Failed, format!("{}: {error}", path.display())))
}

/// Replaces the policy in this host's config with the policy of all hosts.
pub(super) fn take_policy(root: &Path, policy: &str) -> Result<(), Failure> {
    let shared: DocumentMut = policy.parse().map_err(|error: toml_edit::TomlError| {
        let what = format!("cannot read the policy of the other hosts: {error}");
        Failure::plain(Exit::ActionRequired, what)
    })?;
    change(root, |document| {
        let own: Vec<String> = document.iter().map(|(key, _)| key.to_owned()).collect();
        for key in own {
            if key != "agents" && !OF_ONE_HOST.contains(&&*key) {
                document.remove(&key);
            }
        }
        if let Some(agents) = document.get_mut("agents").and_then(Item::as_table_like_mut) {
            for (_, agent) in agents.iter_mut() {
                if let Some(agent) = agent.as_table_like_mut() {
                    OF_AN_AGENT.iter().for_each(|key| drop(agent.remove(key)));
                }
            }
        }
        for (key, item) in shared.iter() {
            match (key, item.as_table_like()) {
                ("agents", Some(agents)) => {
                    for (name, agent) in agents.iter() {
                        let all = section(document, "agents");
                        all.set_implicit(true);
                        let own = all.entry(name).or_insert(Item::Table(Table::new()));
                        for (key, item) in agent
                            .as_table_like()
                            .into_iter()
                            .flat_map(|agent| agent.iter())
                        {
                            own[key] = item.clone();
                        }
                    }
                }
                (key, _) => document[key] = item.clone(),
            }
        }
    })
}

/// Reads this host's config; empty if there is none.
pub(super) fn text(root: &Path) -> Result<String, Failure> {
    let path = root.join(FILE);
    match config::read_text(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read
            .map_err(|error| Failure::plain(Exit::Failed, format!("{}: {error}", path.display()))),
    }
}

fn change(root: &Path, change: impl FnOnce(&mut DocumentMut)) -> Result<(), Failure> {
    let path = root.join(FILE);
    let failed = |error: std::io::Error| {
        Failure::plain(Exit::Failed, format!("{}: {error}", path.display()))
    };
    let _lock = atomic_file::lock(root).map_err(failed)?;
    let before = text(root)?;
    let invalid = |error| Failure::new(Exit::Usage, &error);
    Config::parse(&before, &path).map_err(invalid)?;
    let mut document: DocumentMut = before.parse().expect("the config was read");
    change(&mut document);
    let after = document.to_string();
    Config::parse(&after, &path).map_err(invalid)?;
    atomic_file::replace(&path, &after).map_err(failed)
}

fn section<'d>(document: &'d mut DocumentMut, name: &str) -> &'d mut Table {
    let item = document.entry(name).or_insert(Item::Table(Table::new()));
    if let Some(inline) = item.as_inline_table() {
        *item = Item::Table(inline.clone().into_table());
    }
    item.as_table_mut()
        .expect("a section of a config is a table")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::write(root.path().join(FILE), text).expect("a file");
        root
    }

    fn shared() -> SharedLog {
        SharedLog {
            log: "nats://one:4222".to_owned(),
            workspace: "team".to_owned(),
            host: "tower".parse().expect("a name"),
        }
    }

    #[test]
    fn joining_and_leaving_keep_a_persons_keys_and_comments() {
        for before in [
            workspace::config::TEMPLATE,
            "# ours\nprofile = \"gate\" # why\n\n[ledger]\nsegment_mib = 8 # small\n\n# the end\n",
            "",
        ] {
            let root = file(before);
            write_log(root.path(), Some(&shared())).expect("written");
            let config = Config::load(root.path()).expect("a config");
            assert_eq!(config.ledger.shared(), Ok(Some(shared())));
            let text = std::fs::read_to_string(root.path().join(FILE)).expect("a file");
            for line in before.lines() {
                assert!(text.contains(line), "{line} is gone:\n{text}");
            }
            write_log(root.path(), None).expect("written");
            let config = Config::load(root.path()).expect("a config");
            assert_eq!(
                config,
                Config::parse(before, Path::new("t")).expect("a config")
            );
        }
    }

    #[test]
    fn the_policy_of_the_others_takes_the_place_of_ones_own() {
        let root = file(
            "profile = \"advisory\"\n[agents.pi]\ncommand = [\"pi\"]\nvendor = \"a\"\n[ledger]\nsegment_mib = 8\n",
        );
        let theirs = "[agents.pi]\nvendor = \"b\"\n\n[rounds]\nmax = 3\n";
        take_policy(root.path(), theirs).expect("written");
        let path = root.path().join(FILE);
        let text = std::fs::read_to_string(&path).expect("a file");
        let part = |text: &str| workspace::config::shared_part(text, &path).expect("a config");
        assert_eq!(part(&text), part(theirs), "{text}");
        let config = Config::load(root.path()).expect("a config");
        assert_eq!(config.ledger.segment_mib, 8);
        assert_eq!(config.agents.values().next().expect("pi").command, ["pi"]);
    }
}
