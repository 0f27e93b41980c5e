//! Two npm packages: one with the programs of a platform, and `settled`, which depends on those of all platforms and
//! runs the installed one.

use std::path::Path;

use serde_json::{Value, json};
use settled_tests::repository;

use super::stage::{PROGRAMS, Stage};
use super::{VERSION, copy, write};

/// The platforms with a package in each release; `.github/workflows/release.yml` builds them.
const PLATFORMS: [&str; 4] = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];

/// Packs both packages.
pub(super) fn pack(stage: &Stage) -> Result<(), String> {
    platform(stage)?;
    launcher(stage)
}

fn platform(stage: &Stage) -> Result<(), String> {
    let (system, cpu) = stage.platform.node();
    let name = format!("settled-{system}-{cpu}");
    let root = stage.work.join(&name).join("package");
    for program in PROGRAMS {
        copy(
            &stage.root.join("bin").join(program),
            &root.join("bin").join(program),
        )?;
    }
    for licence in stage.licences() {
        copy(
            &licence,
            &root.join(licence.file_name().unwrap_or_default()),
        )?;
    }
    let mut manifest = manifest(&name);
    manifest["description"] = json!(format!("The programs of settled for {system} on {cpu}"));
    manifest["os"] = json!([system]);
    manifest["cpu"] = json!([cpu]);
    // Linked with glibc, so npm must not install them on a system without it.
    if stage.platform.triple.ends_with("-gnu") {
        manifest["libc"] = json!(["glibc"]);
    }
    packed(stage, &name, &root, &manifest)
}

fn launcher(stage: &Stage) -> Result<(), String> {
    let root = stage.work.join("settled-npm/package");
    let packaging = repository().join("packaging/npm");
    let mut bin = json!({});
    for program in PROGRAMS {
        let script = format!("bin/{program}.js");
        copy(&packaging.join("run.js"), &root.join(&script))?;
        bin[program] = json!(script);
    }
    copy(&packaging.join("README.md"), &root.join("README.md"))?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&stage.root.join(licence), &root.join(licence))?;
    }
    let mut manifest = manifest("settled");
    manifest["description"] =
        json!("A mail daemon for AI coding agents that review each other's pull requests");
    manifest["bin"] = bin;
    manifest["engines"] = json!({"node": ">=16"});
    for platform in PLATFORMS {
        manifest["optionalDependencies"][format!("settled-{platform}")] = json!(VERSION);
    }
    packed(stage, "settled", &root, &manifest)
}

fn manifest(name: &str) -> Value {
    json!({"name": name, "version": VERSION, "license": "MIT OR Apache-2.0"})
}

/// Packs the same file as `npm pack`: a folder `package` in a tar.
fn packed(stage: &Stage, name: &str, root: &Path, manifest: &Value) -> Result<(), String> {
    let text = serde_json::to_string_pretty(manifest).expect("a value is JSON");
    write(root.join("package.json"), text + "\n")?;
    let folder = root.parent().expect("it is below a folder");
    let file = format!("{name}-{VERSION}.tgz");
    super::pack(stage, "tar", folder, &file)
}
