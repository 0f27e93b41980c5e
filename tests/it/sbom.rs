//! The bill of materials of a release.

use serde_json::Value;
use settled_tests::read;

use crate::dist::file;

#[test]
fn the_bill_of_materials_names_every_crate_with_its_digest_and_licence() {
    let bom: Value = serde_json::from_str(&read(file("settled-", ".cdx.json"))).expect("JSON");
    assert_eq!(bom["bomFormat"], "CycloneDX");
    let components = bom["components"].as_array().expect("a list");
    assert!(components.len() > 90, "{} components", components.len());
    let refs: Vec<&Value> = components.iter().map(|each| &each["bom-ref"]).collect();
    for component in components {
        assert!(
            component["licenses"][0]["expression"].is_string(),
            "{component}"
        );
        let is_ours = component["purl"].is_null();
        assert!(
            is_ours || component["hashes"][0]["content"].is_string(),
            "{component}"
        );
    }
    for edge in bom["dependencies"].as_array().expect("a list") {
        for below in edge["dependsOn"].as_array().expect("a list") {
            assert!(refs.contains(&below), "{below} is no component");
        }
    }
    for program in [
        "axum",
        "ratatui",
        "rmcp",
        "async-nats",
        "settled-host",
        "settled-mcp",
        "settled-page",
        "settled-watch",
    ] {
        let is_it = |component: &&Value| component["name"] == program;
        assert!(components.iter().any(|each| is_it(&each)), "no {program}");
    }
    // Built only by the tests.
    assert!(
        !refs
            .iter()
            .any(|name| name.to_string().contains("proptest"))
    );
}
