//! `deny.toml` holds: every crate in the lock file has a licence we take, comes from the registry and is not banned.
//!
//! cargo-deny reads the same file in the release workflow and knows advisories too; this needs no other program, and the
//! network only for crates of other systems that cargo has not downloaded yet.

use std::collections::BTreeSet;

use settled_tests::{packages, read, repository};

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn config() -> toml::Table {
    read(repository().join("deny.toml")).parse().expect("TOML")
}

/// True if an SPDX expression can be met with the licences in the list: any side of an `OR`, both of an `AND`.
fn admits(allowed: &BTreeSet<String>, expression: &str) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let verdict = either(allowed, &words, &mut at);
    assert_eq!(at, words.len(), "not an expression: {expression}");
    verdict
}

fn either(allowed: &BTreeSet<String>, words: &[&str], at: &mut usize) -> bool {
    let mut verdict = both(allowed, words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        verdict |= both(allowed, words, at);
    }
    verdict
}

fn both(allowed: &BTreeSet<String>, words: &[&str], at: &mut usize) -> bool {
    let mut verdict = one(allowed, words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        verdict &= one(allowed, words, at);
    }
    verdict
}

fn one(allowed: &BTreeSet<String>, words: &[&str], at: &mut usize) -> bool {
    let word = words.get(*at).copied().unwrap_or_default();
    *at += 1;
    if word == "(" {
        let verdict = either(allowed, words, at);
        assert_eq!(words.get(*at), Some(&")"), "{words:?}");
        *at += 1;
        return verdict;
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        return allowed.contains(&format!("{word} WITH {exception}"));
    }
    allowed.contains(word)
}

fn list<'t>(config: &'t toml::Table, section: &str, key: &str) -> &'t Vec<toml::Value> {
    config[section][key].as_array().expect("a list")
}

#[test]
fn every_crate_has_a_licence_we_take_and_comes_from_the_registry() {
    let config = config();
    let allowed: BTreeSet<String> = list(&config, "licenses", "allow")
        .iter()
        .map(|name| name.as_str().expect("a name").to_owned())
        .collect();
    let banned: Vec<&str> = list(&config, "bans", "deny")
        .iter()
        .map(|entry| entry["crate"].as_str().expect("a name"))
        .collect();
    for section in ["unknown-registry", "unknown-git"] {
        assert_eq!(config["sources"][section].as_str(), Some("deny"));
    }
    let packages = packages::locked();
    assert!(packages.len() > 150, "{} packages", packages.len());
    let mut wrong = Vec::new();
    for package in &packages {
        let name = format!("{} {}", package["name"], package["version"]);
        let license = package["license"].as_str().unwrap_or_default();
        if license.is_empty() || !admits(&allowed, license) {
            wrong.push(format!("{name}: the licence is {license:?}"));
        }
        if package["source"]
            .as_str()
            .is_some_and(|source| source != REGISTRY)
        {
            wrong.push(format!("{name}: from {}", package["source"]));
        }
        if banned.iter().any(|banned| package["name"] == **banned) {
            wrong.push(format!("{name}: banned"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_expression_is_met_by_either_side_of_an_or_and_by_both_of_an_and() {
    let allowed = ["MIT", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"]
        .map(str::to_owned)
        .into();
    for (expression, is_admitted) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(GPL-3.0 OR MIT) AND Unicode-3.0", true),
        ("GPL-3.0 OR MIT AND Unicode-3.0", true),
        ("MIT AND (GPL-3.0 OR Unlicense)", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Apache-2.0", false),
    ] {
        assert_eq!(admits(&allowed, expression), is_admitted, "{expression}");
    }
}
