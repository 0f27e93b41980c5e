//! The archive of a release, which the first of all tests that need packages packs: early in the alphabet, so that the
//! others do not wait for it.

use std::ffi::OsStr;
use std::path::Path;

use settled_tests::{list, read};

use crate::dist::{dist, file, fresh, pack, run, runs, text};

#[test]
fn the_archive_holds_what_is_needed_and_runs_where_it_is_unpacked() {
    let place = fresh();
    run("sha256sum", &["--check", "--strict", "SHA256SUMS"], dist());
    run(
        "tar",
        &["-xzf", text(&file("settled-", ".tar.gz"))],
        place.path(),
    );
    let root = list(place.path()).remove(0);
    runs(&root.join("bin"));
    for path in [
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "README.md",
        "CHANGELOG.md",
        "man/settled.1",
        "man/settled-send.1",
        "completions/settled.bash",
        "completions/settled.fish",
        "completions/settled.zsh",
    ] {
        assert!(root.join(path).is_file(), "{path} is missing");
    }
    let licences = read(root.join("LICENSES-THIRD-PARTY.txt"));
    for crate_of_one in ["\nserde 1.", "\nratatui 0.", "\naxum 0.", "\nrmcp 3."] {
        assert!(licences.contains(crate_of_one), "no{crate_of_one}");
    }
    assert!(
        licences.matches("Permission is hereby granted").count() > 50,
        "few texts"
    );
}

#[test]
fn the_same_programs_give_the_same_bytes() {
    let again = fresh();
    pack(again.path(), "archive,sbom,npm");
    for path in list(again.path()) {
        let name = path.file_name().and_then(OsStr::to_str).expect("UTF-8");
        if path.is_file() && name != "SHA256SUMS" {
            let bytes = |path: &Path| std::fs::read(path).expect("packed");
            assert!(bytes(&path) == bytes(&dist().join(name)), "{name} differs");
        }
    }
}
