//! Extracts the part of `settled.toml` by which every host of a shared ledger judges: all that belongs to no single
//! machine.

use std::collections::BTreeMap;
use std::path::Path;

use toml::{Table, Value};

use super::{AgentSection, Config, ConfigError, FILE};

/// Sections that belong to one machine: its ledger, ports, people, programs and disk.
pub const OF_ONE_HOST: [&str; 5] = ["ledger", "metrics", "notify", "retention", "runner"];

/// The keys of an agent's section that affect decisions; the others say how its host starts it.
pub const OF_AN_AGENT: [&str; 2] = ["roles", "vendor"];

/// The shared part of a config in a canonical form, with the keys that are written out. [`is_same_policy`] compares two.
pub fn shared_part(text: &str, path: &Path) -> Result<String, ConfigError> {
    Config::parse(text, path)?;
    let mut table: Table = toml::from_str(text).expect("the config was read");
    table.retain(|key, _| !OF_ONE_HOST.contains(&key));
    if let Some(Value::Table(agents)) = table.get_mut("agents") {
        for (_, agent) in agents.iter_mut() {
            if let Value::Table(agent) = agent {
                agent.retain(|key, _| OF_AN_AGENT.contains(&key));
            }
        }
    }
    without_empty(&mut table);
    Ok(toml::to_string(&sorted(&table)).expect("it was read from such a text"))
}

/// True if two shared parts decide the same: a key that is written out with its default is the same as none.
pub fn is_same_policy(one: &str, other: &str) -> bool {
    let values = |text| {
        let config = Config::parse(text, Path::new(FILE)).ok()?;
        let mut values = Config::default().with_policy_of(config);
        values
            .agents
            .retain(|_, agent| *agent != AgentSection::default());
        Some(values)
    };
    one == other || values(one).is_some_and(|values_of_one| Some(values_of_one) == values(other))
}

impl Config {
    /// This config with the shared part of another one.
    pub fn with_policy_of(&self, mut theirs: Config) -> Config {
        for (name, own) in &self.agents {
            let shared = theirs.agents.remove(name).unwrap_or_default();
            let agent = AgentSection {
                roles: shared.roles,
                vendor: shared.vendor,
                ..own.clone()
            };
            theirs.agents.insert(name.clone(), agent);
        }
        Config {
            ledger: self.ledger.clone(),
            metrics: self.metrics.clone(),
            notify: self.notify.clone(),
            retention: self.retention,
            runner: self.runner.clone(),
            ..theirs
        }
    }
}

fn without_empty(table: &mut Table) {
    table.retain(|_, value| match value {
        Value::Table(table) => {
            without_empty(table);
            !table.is_empty()
        }
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Array(_) => true,
    });
}

/// Sorts by name at every level, whatever order the file has.
fn sorted(table: &Table) -> BTreeMap<&String, Value> {
    let deep = |value: &Value| {
        value.as_table().map_or_else(
            || value.clone(),
            |table| {
                let sorted = sorted(table).into_iter();
                Value::Table(sorted.map(|(key, value)| (key.clone(), value)).collect())
            },
        )
    };
    table
        .iter()
        .map(|(key, value)| (key, deep(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> String {
        shared_part(text, Path::new("t")).expect("a config")
    }

    #[test]
    fn the_shared_part_leaves_out_what_one_machine_has() {
        let here = "profile = \"gate\"\n[rounds]\nmax = 3\n[ledger]\nsegment_mib = 8\n\
                    [agents.codex]\nvendor = \"openai\"\ncommand = [\"codex\"]\n[agents.claude]\nconcurrent = 2\n";
        let there = "# other words\n[agents.codex]\nvendor = \"openai\"\n[metrics]\nlisten = \"unix:m\"\n\
                     [rounds]\nmax = 3\n";
        let there = format!("profile = \"gate\"\n{there}");
        assert_eq!(part(here), part(&there));
        assert!(part(here).contains("vendor"), "{}", part(here));
        assert_eq!(part("[ledger]\nsegment_mib = 8\n"), "");
    }

    #[test]
    fn a_default_that_is_written_out_is_no_other_policy() {
        let is_same = |one: &str, other: &str| is_same_policy(&part(one), &part(other));
        let written = "profile = \"gate\"\nreviewers = []\n[rounds]\nmax = 2\n[gate]\nrequire_head = false\n[agents.pi]\nroles = []\n";
        assert_ne!(part(written), part(""));
        assert!(is_same(written, "") && is_same("", written));
        assert!(!is_same("[rounds]\nmax = 3\n", written));
        assert!(!is_same("[agents.pi]\nvendor = \"a\"\n", written));
        assert!(!is_same_policy("of a newer version", ""));
    }

    #[test]
    fn a_config_with_the_policy_of_another_keeps_what_one_machine_has() {
        let read = |text: &str| Config::parse(text, Path::new("t")).expect("a config");
        let machine = "[ledger]\nsegment_mib = 8\n[metrics]\nlisten = \"unix:m\"\n[retention]\nsent_days = 9\n\
                       [notify]\ndesktop = true\n[runner]\nconcurrent = 7\n";
        let own = format!(
            "profile = \"advisory\"\n{machine}[agents.claude]\ncommand = [\"claude\"]\n[agents.codex]\nuid = 7\nvendor = \"a\"\n"
        );
        let theirs = "[rounds]\nmax = 3\n[agents.codex]\nvendor = \"b\"\nroles = [\"reviewer\"]\n[agents.pi]\nroles = [\"author\"]\n";
        let both = format!(
            "{machine}[rounds]\nmax = 3\n[agents.claude]\ncommand = [\"claude\"]\n\
             [agents.codex]\nuid = 7\nvendor = \"b\"\nroles = [\"reviewer\"]\n[agents.pi]\nroles = [\"author\"]\n"
        );
        assert_eq!(read(&own).with_policy_of(read(theirs)), read(&both));
    }
}
