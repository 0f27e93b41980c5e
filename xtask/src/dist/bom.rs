//! The components of the programs: the bill of materials as CycloneDX, and the third-party licences.
//!
//! Both come from `cargo metadata`: every crate that is compiled into one of the programs on the platform, without
//! build and test dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};
use settled_tests::{binaries, repository};

use super::platform::Platform;
use super::stage::{PACKAGES, Stage};
use super::{VERSION, ran};

/// Writes `settled-VERSION-TRIPLE.cdx.json`.
pub(super) fn write(stage: &Stage) -> Result<(), String> {
    let crates = Crates::of(&stage.platform)?;
    let text = serde_json::to_string_pretty(&crates.bom()?).expect("a value is JSON");
    let name = format!("{}.cdx.json", super::archive::name(stage));
    super::write(stage.out.join(name), text + "\n")
}

/// Returns the licences of every third-party crate, from their packages.
pub(super) fn licences(platform: &Platform) -> Result<String, String> {
    let crates = Crates::of(platform)?;
    let mut text =
        String::from("The programs hold these crates, each under the licence it names.\n");
    for package in crates.packages.values() {
        if package["source"].is_null() {
            continue;
        }
        let title = format!("{} {}", word(package, "name"), word(package, "version"));
        text.push_str(&format!(
            "\n{}\n{title}: {}\n{}\n",
            "=".repeat(80),
            expression(package),
            word(package, "repository")
        ));
        let manifest = Path::new(word(package, "manifest_path"));
        for path in licence_files(manifest.parent().expect("a manifest is in a folder"))? {
            let licence = std::fs::read(&path).map_err(|error| format!("{title}: {error}"))?;
            text.push_str(&format!(
                "\n{}\n",
                String::from_utf8_lossy(&licence).trim_end()
            ));
        }
    }
    Ok(text)
}

fn licence_files(directory: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let entries = std::fs::read_dir(directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    let is_licence = |path: &std::path::PathBuf| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        let begins = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];
        path.is_file() && begins.iter().any(|word| name.starts_with(word))
    };
    let mut files: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(is_licence)
        .collect();
    files.sort();
    Ok(files)
}

/// The crates of the programs, by cargo's package ids.
struct Crates {
    packages: BTreeMap<String, Value>,
    /// The dependencies of each.
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Crates {
    fn of(platform: &Platform) -> Result<Self, String> {
        let mut metadata = binaries::cargo();
        metadata
            .args([
                "metadata",
                "--format-version",
                "1",
                "--locked",
                "--filter-platform",
            ])
            .arg(&platform.triple)
            .current_dir(repository());
        let metadata: Value = serde_json::from_str(&ran(&mut metadata)?)
            .map_err(|error| format!("cargo metadata: {error}"))?;
        let by_id = |list: &Value| -> BTreeMap<String, Value> {
            let items = list.as_array().into_iter().flatten();
            items
                .map(|item| (word(item, "id").to_owned(), item.clone()))
                .collect()
        };
        let all = by_id(&metadata["packages"]);
        let nodes = by_id(&metadata["resolve"]["nodes"]);
        let is_root = |package: &Value| {
            package["source"].is_null() && PACKAGES.contains(&word(package, "name"))
        };
        let mut open: Vec<String> = all
            .iter()
            .filter(|(_, package)| is_root(package))
            .map(|(id, _)| id.clone())
            .collect();
        let mut found = Self {
            packages: BTreeMap::new(),
            edges: BTreeMap::new(),
        };
        while let Some(id) = open.pop() {
            if found.packages.contains_key(&id) {
                continue;
            }
            let package = all
                .get(&id)
                .ok_or_else(|| format!("cargo names no package {id}"))?;
            let below: BTreeSet<String> = nodes[&id]["deps"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|edge| is_normal(edge))
                .map(|edge| word(edge, "pkg").to_owned())
                .collect();
            open.extend(below.iter().cloned());
            found.packages.insert(id.clone(), package.clone());
            found.edges.insert(id, below);
        }
        Ok(found)
    }

    fn bom(&self) -> Result<Value, String> {
        let lock = std::fs::read_to_string(repository().join("Cargo.lock"))
            .map_err(|error| format!("Cargo.lock: {error}"))?;
        let digests = digests(&lock);
        let components: Vec<Value> = self
            .packages
            .values()
            .map(|package| component(package, &digests))
            .collect();
        let dependencies: Vec<Value> = self
            .edges
            .iter()
            .map(|(id, below)| {
                let below: Vec<_> = below
                    .iter()
                    .map(|id| reference(&self.packages[id]))
                    .collect();
                json!({"ref": reference(&self.packages[id]), "dependsOn": below})
            })
            .collect();
        Ok(json!({
            "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "component": {
                    "type": "application",
                    "bom-ref": "programs",
                    "name": "settled",
                    "version": VERSION,
                    "licenses": [{"expression": "MIT OR Apache-2.0"}],
                },
            },
            "components": components,
            "dependencies": dependencies,
        }))
    }
}

/// True if a dependency is compiled in.
fn is_normal(edge: &Value) -> bool {
    let kinds = edge["dep_kinds"].as_array();
    kinds
        .into_iter()
        .flatten()
        .any(|kind| kind["kind"].is_null())
}

fn component(package: &Value, digests: &BTreeMap<(String, String), String>) -> Value {
    let (name, version) = (word(package, "name"), word(package, "version"));
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(package),
        "name": name,
        "version": version,
        "licenses": [{"expression": expression(package)}],
    });
    if !package["source"].is_null() {
        component["purl"] = json!(reference(package));
    }
    if let Some(digest) = digests.get(&(name.to_owned(), version.to_owned())) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": digest}]);
    }
    component
}

fn reference(package: &Value) -> String {
    let form = if package["source"].is_null() {
        "settled"
    } else {
        "pkg:cargo"
    };
    format!(
        "{form}/{}@{}",
        word(package, "name"),
        word(package, "version")
    )
}

/// The licence as an SPDX expression; an older `A/B` means `A OR B`.
fn expression(package: &Value) -> String {
    word(package, "license").replace('/', " OR ")
}

/// The digest of each package by name and version, from the lock file.
fn digests(lock: &str) -> BTreeMap<(String, String), String> {
    let mut digests = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let lines = package.lines();
            let value = lines.filter_map(|line| line.strip_prefix(key)).next()?;
            Some(value.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned())
        };
        if let (Some(name), Some(version), Some(digest)) =
            (value("name"), value("version"), value("checksum"))
        {
            digests.insert((name, version), digest);
        }
    }
    digests
}

fn word<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}
