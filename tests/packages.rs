//! The packages of the workspace and their dependencies, as cargo knows them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{binaries, repository};

/// Returns the packages of this repository.
pub fn ours() -> Vec<Value> {
    metadata(&["--no-deps", "--offline"])
}

/// Returns every package in the lock file, including those for other systems.
pub fn locked() -> Vec<Value> {
    metadata(&["--locked"])
}

fn metadata(options: &[&str]) -> Vec<Value> {
    let output = binaries::cargo()
        .args(["metadata", "--format-version", "1"])
        .args(options)
        .current_dir(repository())
        .output()
        .expect("cargo can be run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut metadata: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    serde_json::from_value(metadata["packages"].take()).expect("a list of packages")
}

/// Returns the names of the packages that `package` depends on, including its tests' unless `shipped` is set.
pub fn dependencies(package: &Value, shipped: bool) -> Vec<String> {
    let dependencies = package["dependencies"]
        .as_array()
        .expect("a list of dependencies")
        .iter();
    let counts = |dependency: &&Value| !shipped || dependency["kind"] != "dev";
    let name = |dependency: &Value| {
        dependency["name"]
            .as_str()
            .expect("a dependency has a name")
            .to_owned()
    };
    dependencies.filter(counts).map(name).collect()
}

/// Returns the packages of this repository that are built into `top`, itself included, but for `passed_over` and what only
/// these bring.
pub fn built_into(top: &str, passed_over: &[&str]) -> BTreeSet<String> {
    let packages = ours();
    let mut found = BTreeSet::new();
    let mut next = vec![top.to_owned()];
    while let Some(name) = next.pop() {
        let package = packages.iter().find(|package| package["name"] == *name);
        if let Some(package) = package
            && found.insert(name)
        {
            let below = dependencies(package, true).into_iter();
            next.extend(below.filter(|name| !passed_over.contains(&&**name)));
        }
    }
    found
}
