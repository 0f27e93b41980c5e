//! Guards the architecture: the edges between the rooms, what a room may touch, import cycles inside a room, the size
//! of a room, and repeated names. An edge to a room that is not below fails here first and is then either removed or
//! written into `docs/architecture.md`. The one exception: `os-calls` makes calls that no crate wraps, so it may be unsafe and has
//! lints of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use settled_tests::house::{self, House, Room};
use settled_tests::imports::{self, circles, folders, imports};
use settled_tests::packages::{self, dependencies};
use settled_tests::rust_source::sources;
use settled_tests::{list, read, repository, write};

/// Each room with the rooms it is built on. It may also use the rooms below these.
const EDGES: [(&str, &[&str]); 36] = [
    ("message-schema", &[]),
    ("git", &["message-schema"]),
    ("validate-message", &["message-schema"]),
    ("validate-message-cli", &["validate-message"]),
    ("pair-machine", &["message-schema"]),
    ("policy", &["message-schema"]),
    ("review-words", &["message-schema", "pair-machine"]),
    (
        "review",
        &["validate-message", "pair-machine", "policy", "review-words"],
    ),
    ("os-calls", &[]),
    ("disk", &["os-calls"]),
    ("sorted-rows", &["disk"]),
    // A record names files, and the digests of lines and texts.
    ("ledger-records", &["disk", "sorted-rows"]),
    ("spool", &["ledger-records"]),
    ("log-suite", &["spool"]),
    ("fleet", &["review-words", "ledger-records"]),
    ("judgement", &["review", "spool"]),
    // The config names the form of a command's output, which the runner reads.
    ("workspace", &["judgement", "spool", "runner", "fleet"]),
    ("mailbox", &["workspace", "git"]),
    ("simulate", &["workspace"]),
    // The records in a verdict are judged again.
    ("inspect", &["workspace", "simulate", "git"]),
    // A run gets a worktree of its own.
    ("runner", &["message-schema", "spool", "git"]),
    ("logs", &["workspace"]),
    ("file-events", &[]),
    ("daemon", &["mailbox", "runner", "file-events"]),
    ("pair", &["daemon"]),
    ("screen", &["workspace"]),
    ("demo", &["workspace"]),
    // It words what serving ended with, for the two programs that serve.
    ("views", &["inspect", "mailbox", "screen", "daemon"]),
    ("cockpit", &["inspect", "mailbox"]),
    ("notifier", &["workspace"]),
    // The live screen and the page are separate programs, because they need many crates.
    ("settled-watch", &["cockpit", "screen"]),
    // A person's orders on the page are the commands' orders.
    ("settled-page", &["daemon", "cockpit", "logs"]),
    // The logs of shared ledgers, which have network clients, and the daemon on one of them.
    ("settled-host", &["daemon", "views", "logs"]),
    ("setup", &["workspace"]),
    (
        "settled",
        &[
            "pair", "demo", "setup", "views", "cockpit", "notifier", "logs",
        ],
    ),
    // It runs the program `settled` and shares no code with it.
    ("settled-mcp", &[]),
];

/// The tests that every log of a shared ledger passes. Only tests of other rooms link it; it is not shipped.
const SUITE: &str = "log-suite";

/// Crates that may use everything and on which nothing depends.
const ONLOOKERS: [&str; 4] = ["settled-tests", "settled-torture", "settled-model", "xtask"];

/// Locked while a test reads or writes the page: with `UPDATE=1` several write it.
static PAGE: Mutex<()> = Mutex::new(());

/// The pure rooms.
const PURE: [&str; 9] = [
    "fleet",
    "ledger-records",
    "message-schema",
    "validate-message",
    "pair-machine",
    "policy",
    "review-words",
    "review",
    "judgement",
];

/// The most files or folders of a room that may import each other in a cycle.
const CIRCLE_MAX: usize = 3;

/// The most lines of source in a room, without its tests.
const ROOM_MAX: usize = 10_000;

/// The most types that may share a name.
const PLACES_MAX: usize = 2;

/// Names that every command may define, because they mean the same everywhere.
const OF_EACH: [&str; 2] = ["Args", "Command"];

/// The edges from a pure room to one that is not. A record names files and digests, and the judgement uses plain types of
/// the spool, whose other functions `clippy.toml` bans.
const OUT_OF_PURE: [(&str, &str); 3] = [
    ("ledger-records", "disk"),
    ("ledger-records", "sorted-rows"),
    ("judgement", "spool"),
];

/// Crates that would give a pure room a disk, a clock, a signal or a log.
const WORLDLY: [&str; 13] = [
    "cap-std",
    "crossbeam-channel",
    "fs2",
    "getrandom",
    "libc",
    "log",
    "nix",
    "notify",
    "rand",
    "rustix",
    "tempfile",
    "tokio",
    "tracing",
];

#[test]
fn the_rooms_depend_on_each_other_only_along_the_drawn_edges() {
    for package in packages::ours() {
        let name = package["name"].as_str().expect("a package has a name");
        if ONLOOKERS.contains(&name) {
            continue;
        }
        assert!(
            EDGES.iter().any(|(room, _)| *room == name),
            "`{name}` is a new room: draw its edges here and in docs/architecture.md"
        );
        let allowed = below(name);
        let shipped = dependencies(&package, true);
        assert!(
            !shipped.contains(&SUITE.to_owned()),
            "`{name}` ships `{SUITE}`"
        );
        for dependency in dependencies(&package, false) {
            let is_room = EDGES.iter().any(|(room, _)| *room == dependency)
                || ONLOOKERS.contains(&&*dependency);
            // A crate's tests may enable its own features.
            if is_room && dependency != name && dependency != SUITE {
                assert!(
                    allowed.contains(&*dependency),
                    "`{name}` must not depend on `{dependency}`"
                );
            }
        }
    }
}

#[test]
fn every_edge_is_used() {
    for package in packages::ours() {
        let name = package["name"].as_str().expect("a package has a name");
        let Some(room) = rooms().iter().find(|room| room.name == name) else {
            continue;
        };
        let shipped = dependencies(&package, true);
        let drawn = EDGES.iter().find(|(room, _)| *room == name);
        for lower in drawn.expect("every room is in the table").1 {
            assert!(
                shipped.iter().any(|found| found == lower),
                "`{name}` does not depend on `{lower}`, as the table says"
            );
        }
        for lower in &shipped {
            let word = lower.replace('-', "_");
            let mut tokens = room.sources.iter().flat_map(|source| &source.tokens);
            assert!(
                rooms().iter().all(|room| room.name != *lower)
                    || tokens.any(|token| token.text == word),
                "`{name}` depends on `{lower}` and never names it"
            );
        }
    }
}

#[test]
fn the_page_lists_every_room_with_its_edges() {
    let mut list = "| room | built on |\n|---|---|\n".to_owned();
    let mut rooms = EDGES.to_vec();
    rooms.sort_unstable();
    for (room, on) in rooms {
        let on: Vec<String> = on.iter().map(|lower| format!("`{lower}`")).collect();
        list += &format!("| `{room}` | {} |\n", on.join(", "));
    }
    compare_between("<!-- edges -->\n", &list);
}

/// The text before, between and after two marks.
fn between<'a>(text: &'a str, mark: &str) -> [&'a str; 3] {
    let parts: Vec<&str> = text.split(mark).collect();
    parts.try_into().expect("two marks")
}

/// Compares the part of the page between two marks with the expected one, or writes it with `UPDATE=1`.
fn compare_between(mark: &str, expected: &str) {
    let (page, _alone) = page();
    let text = read(&page);
    let [before, part, after] = between(&text, mark);
    if std::env::var_os("UPDATE").is_some() {
        return write(&page, &[before, expected, after].join(mark));
    }
    assert_eq!(part, expected, "UPDATE=1 writes it");
}

#[test]
fn the_loop_of_contributors_names_every_room() {
    let page = read(repository().join("CONTRIBUTING.md"));
    let of_the_loop = |line: &&str| line.starts_with("| `") && line.contains("cargo test -p");
    let rows: String = page.lines().filter(of_the_loop).collect();
    for (room, _) in EDGES {
        assert!(
            rows.contains(&format!("`{room}`")),
            "CONTRIBUTING.md has no loop for `{room}`"
        );
    }
}

fn page() -> (PathBuf, MutexGuard<'static, ()>) {
    let alone = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    (repository().join("docs/architecture.md"), alone)
}

/// The rooms below a room, according to the table.
fn below(room: &str) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut next = vec![room];
    while let Some(name) = next.pop() {
        let edges = EDGES.iter().find(|(room, _)| *room == name);
        for lower in edges.expect("the table knows every room it names").1 {
            if found.insert(*lower) {
                next.push(lower);
            }
        }
    }
    assert!(!found.contains(room), "the table leads `{room}` to itself");
    found
}

/// The rooms with their sources. Each must be in the table.
fn rooms() -> &'static [Room] {
    let rooms = house::rooms();
    let mut drawn = EDGES.map(|(room, _)| room);
    drawn.sort_unstable();
    let found: Vec<&str> = rooms.iter().map(|room| room.name.as_str()).collect();
    assert_eq!(found, drawn, "the folders of `crates`, and the table");
    rooms
}

#[test]
fn the_pure_rooms_depend_on_nothing_worldly() {
    for package in packages::ours() {
        let name = package["name"].as_str().expect("a package has a name");
        if PURE.contains(&name) {
            let found = dependencies(&package, true);
            let is_worldly = |found: &&String| {
                let is_room = EDGES.iter().any(|(room, _)| room == found);
                WORLDLY.contains(&found.as_str())
                    || (is_room
                        && !PURE.contains(&found.as_str())
                        && !OUT_OF_PURE.contains(&(name, found.as_str())))
            };
            let worldly: Vec<_> = found.iter().filter(is_worldly).collect();
            assert!(
                worldly.is_empty(),
                "`{name}` is pure and must not depend on {worldly:?}"
            );
        }
    }
}

#[test]
fn the_pure_rooms_ban_clock_files_and_environment() {
    let bans = read(repository().join("clippy.toml"));
    for banned in [
        "std::fs::read",
        "std::fs::write",
        "std::time::SystemTime::now",
        "std::env::var",
    ] {
        let line = format!("{{ path = \"{banned}\", reason = \"");
        assert!(
            bans.contains(&line),
            "clippy.toml does not ban {banned} with a reason"
        );
    }
    for room in rooms().iter().map(|room| room.name.as_str()) {
        let folder = repository().join("crates").join(room);
        let own = folder.join("clippy.toml");
        assert!(!own.exists(), "`{room}` hides the bans of all from clippy");
        let switch = "\n#![warn(clippy::disallowed_methods, clippy::disallowed_types)]\n";
        assert!(
            !PURE.contains(&room) || read(folder.join("src/lib.rs")).contains(switch),
            "`{room}` is pure and does not switch the bans on"
        );
    }
}

#[test]
fn the_bans_name_every_function_of_the_spool_that_reads_the_disk_and_no_other() {
    // A path is only text to it.
    const PURE_OF_SPOOL: [&str; 1] = ["check_packet_path"];
    let spool = rooms().iter().find(|room| room.name == "spool");
    let sources = &spool.expect("the spool").sources;
    let root = sources.iter().find(|source| source.module.is_empty());
    let root = &root.expect("a root").tokens;
    let mut exported = BTreeSet::new();
    for (at, pair) in root.windows(2).enumerate() {
        if pair[0].text == "pub" && pair[1].text == "use" {
            let statement = root[at..].windows(2).take_while(|pair| pair[0].text != ";");
            let names = statement.filter(|pair| pair[1].text != "::");
            exported.extend(names.map(|pair| pair[0].text.as_str()));
        }
    }
    let bans = read(repository().join("clippy.toml"));
    let banned: Vec<&str> = bans
        .split("path = \"spool::")
        .skip(1)
        .filter_map(|line| line.split('"').next())
        .collect();
    for path in &banned {
        let name = path.rsplit("::").next().expect("a name");
        let is_deeper = path.contains("::");
        let is_there = sources.iter().any(|source| source.types().contains(&name));
        assert!(
            if is_deeper {
                is_there
            } else {
                exported.contains(name)
            },
            "clippy.toml bans `spool::{path}`, which does not exist"
        );
    }
    let mut functions = 0;
    for tokens in sources.iter().map(|source| &source.tokens) {
        for (at, pair) in tokens.windows(3).enumerate() {
            let [public, function, name] = pair else {
                unreachable!("three tokens")
            };
            if public.text != "pub" || function.text != "fn" || !exported.contains(&*name.text) {
                continue;
            }
            let arguments = tokens[at..].iter().take_while(|token| token.text != "{");
            let reads = arguments
                .into_iter()
                .any(|token| ["Disk", "Path"].contains(&&*token.text));
            if reads && !PURE_OF_SPOOL.contains(&&*name.text) {
                functions += 1;
                assert!(
                    banned.contains(&&*name.text),
                    "clippy.toml does not ban `spool::{}` in the pure rooms",
                    name.text
                );
            }
        }
    }
    assert!(functions > 5, "only {functions} functions were found");
}

#[test]
fn no_more_than_three_files_or_folders_import_each_other_in_a_circle() {
    for room in rooms() {
        assert_circles(&room.name, "files", &circles(&room.imports));
        assert_circles(&room.name, "folders", &circles(&folders(&room.imports)));
    }
}

fn assert_circles(room: &str, of: &str, circles: &[BTreeSet<&str>]) {
    let longest = circles.first().map_or(0, BTreeSet::len);
    assert!(
        longest <= CIRCLE_MAX,
        "`{room}`: {longest} {of} import each other in a circle: {:?}",
        circles[0]
    );
}

/// The floors of a room. The root file is on none, because it only declares and re-exports.
fn floors_of(mut graph: imports::Graph) -> Vec<String> {
    for root in ["lib", "main"] {
        graph.remove(root);
        for targets in graph.values_mut() {
            targets.remove(root);
        }
    }
    let floors = imports::floors(&graph).into_iter();
    floors
        .map(|floor| format!("`{}`", floor.join("`, `")))
        .collect()
}

#[test]
fn an_import_that_leads_up_moves_a_file_up_also_through_the_root_and_from_an_attribute() {
    let folder = settled_tests::scratch();
    for (file, text) in [
        ("lib.rs", "mod low;\nmod high;\npub use high::High;\n"),
        ("low.rs", "pub struct Low;\n"),
        (
            "high.rs",
            "pub struct High(crate::low::Low);\nfn f() { struct Inner; }\n",
        ),
    ] {
        write(folder.path().join(file), text);
    }
    let floors = || floors_of(folders(&imports(&sources(folder.path()))));
    assert_eq!(floors(), ["`low`", "`high`"]);
    let high = "pub use crate::low::Low;\npub struct High;\nfn f() { struct Inner; }\n";
    write(folder.path().join("high.rs"), high);
    assert_eq!(floors(), ["`high`, `low`"], "a re-export imports nothing");
    let through_the_root = "use crate::High;\npub struct Low(High);\n";
    let from_an_attribute =
        "#[serde(deserialize_with = \"crate::high::read\")]\npub struct Low(u8);\n";
    for low in [through_the_root, from_an_attribute] {
        write(folder.path().join("low.rs"), low);
        assert_eq!(floors(), ["`high`", "`low`"]);
    }
    let high = "pub struct High(crate::low::Low);\nfn f() { struct Inner; }\n";
    write(folder.path().join("high.rs"), high);
    write(folder.path().join("top.rs"), "use crate::high::High;\n");
    assert_eq!(
        floors(),
        ["`high`, `low`", "`top`"],
        "a cycle is on one floor"
    );
    let sources = sources(folder.path());
    let types: Vec<&str> = sources.iter().flat_map(|source| source.types()).collect();
    assert_eq!(types, ["High", "Inner", "Low"]);
}

#[test]
fn the_page_lists_the_floors() {
    let mut list = "| room | floors, the lowest first |\n|---|---|\n".to_owned();
    for room in rooms() {
        let floors = floors_of(folders(&room.imports));
        if floors.len() > 2 {
            list += &format!("| `{}` | {} |\n", room.name, floors.join("; "));
        }
    }
    compare_between("<!-- floors -->\n", &list);
}

#[test]
fn a_circle_is_found_through_names_that_are_passed_on_and_without_the_tests() {
    let folder = settled_tests::scratch();
    std::fs::create_dir(folder.path().join("b")).expect("a folder");
    for (file, text) in [
        (
            "lib.rs",
            "mod a;\nmod b;\nmod d;\npub use b::c::{C, D as Other};\n",
        ),
        (
            "a.rs",
            "use crate::{Other, d};\npub struct A(Other);\nfn f() { d::f(); }\n",
        ),
        (
            "b/mod.rs",
            "pub mod c;\nuse self::c::C;\npub enum B { A(C) }\n",
        ),
        (
            "b/c.rs",
            "pub struct C;\n/* use crate::d::A; */\npub type D = super::B;\nfn f<'a>(_: crate::a::A) -> impl Fn() + use<'a> {}\n",
        ),
        (
            "d.rs",
            "pub fn f() { print(\"crate::a::A\", 'x') }\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n    struct T;\n}\n",
        ),
    ] {
        write(folder.path().join(file), text);
    }
    let sources = sources(folder.path());
    let graph = imports(&sources);
    // The head of a folder and a file in it count like any two files.
    assert_eq!(
        circles(&graph),
        [BTreeSet::from(["a.rs", "b/c.rs", "b/mod.rs"])],
        "{graph:?}"
    );
    assert_eq!(graph["a.rs"], ["b/c.rs", "d.rs"].map(str::to_owned).into());
    assert!(
        graph["d.rs"].is_empty() && graph["lib.rs"].is_empty(),
        "{graph:?}"
    );
    assert_eq!(circles(&folders(&graph)), [BTreeSet::from(["a", "b"])]);
    let types: Vec<&str> = sources.iter().flat_map(|source| source.types()).collect();
    assert_eq!(types, ["A", "C", "D", "B"]);
    assert_eq!(sources[3].lines, 1, "{:?}", sources[3].file);
}

#[test]
fn no_room_is_larger_than_ten_thousand_lines() {
    for Room {
        name: room,
        sources,
        ..
    } in rooms()
    {
        let lines: usize = sources.iter().map(|source| source.lines).sum();
        assert!(
            lines <= ROOM_MAX,
            "`{room}` has {lines} lines, of at most {ROOM_MAX}"
        );
    }
}

/// The page's figures may be off by a fifth and by this many, since rooms change every day.
const FIGURE_SLACK: usize = 60;

#[test]
fn the_page_says_how_large_each_room_is() {
    const MARK: &str = "<!-- house -->\n";
    let (page, _alone) = page();
    let text = read(&page);
    let [before, table, after] = between(&text, MARK);
    let house = House::ours();
    if std::env::var_os("UPDATE").is_some() {
        return write(&page, &[before, &house.table(), after].join(MARK));
    }
    let rows: BTreeMap<&str, [usize; 2]> = table.lines().skip(2).filter_map(figures).collect();
    let names: Vec<&str> = house.rooms.iter().map(|room| room.name.as_str()).collect();
    assert_eq!(
        rows.keys().copied().collect::<Vec<_>>(),
        names,
        "UPDATE=1 writes the table"
    );
    for room in &house.rooms {
        for (said, is) in rows[room.name.as_str()]
            .iter()
            .zip([room.lines, room.public])
        {
            assert!(
                said.abs_diff(is) <= is / 5 + FIGURE_SLACK,
                "`{}`: the page says {said}, it is {is}; UPDATE=1 writes the table",
                room.name
            );
        }
    }
}

#[test]
fn the_page_says_what_the_rooms_changed() {
    let (page, _alone) = page();
    let mut text = read(&page);
    for (figure, now) in House::ours().figures() {
        let mark = format!("\n| {figure} |");
        let row = text.split(&mark).nth(1).expect("the page has the figure");
        let row = row.lines().next().expect("a row");
        let said = row.split('|').nth(1).expect("a third cell").trim();
        if std::env::var_os("UPDATE").is_some() {
            let rewritten = row.replace(&format!("| {said} |"), &format!("| {now} |"));
            text = text.replace(&format!("{mark}{row}"), &format!("{mark}{rewritten}"));
            continue;
        }
        let (said, is) = (numbers(said), numbers(&now));
        let is_near = |(said, is): (&usize, &usize)| said.abs_diff(*is) <= is / 5;
        assert!(
            said.len() == is.len() && said.iter().zip(&is).all(is_near),
            "{figure}: the page says {said:?}, it is {is:?}; UPDATE=1 writes it"
        );
    }
    if std::env::var_os("UPDATE").is_some() {
        write(&page, &text);
    }
}

/// The numbers in a cell, which may contain a space as thousands separator.
fn numbers(cell: &str) -> Vec<usize> {
    let apart = cell.replace(" and ", ",").replace(" of ", ",");
    let number = |part: &str| part.replace(' ', "").parse().ok();
    apart.split(',').filter_map(number).collect()
}

/// A row of the page's table: the room, its lines and its public names.
fn figures(row: &str) -> Option<(&str, [usize; 2])> {
    let mut cells = row.split('|').map(str::trim).skip(1);
    let room = cells.next()?.trim_matches('`');
    let mut number = || cells.next()?.parse().ok();
    Some((room, [number()?, number()?]))
}

#[test]
fn no_name_is_given_to_types_in_more_than_two_places() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Room {
        name: room,
        sources,
        ..
    } in rooms()
    {
        for source in sources {
            for name in source.types() {
                let place = format!("{room}: {}", source.file.display());
                places.entry(name.to_owned()).or_default().push(place);
            }
        }
    }
    assert!(places.len() > 500, "only {} types were found", places.len());
    for (name, places) in places {
        assert!(
            OF_EACH.contains(&&*name) || places.len() <= PLACES_MAX,
            "`{name}` would name {} types: {places:#?}",
            places.len()
        );
    }
}

#[test]
fn every_package_takes_its_lints_and_versions_from_the_workspace() {
    for manifest in ["crates/*", "tests", "tests/model", "tests/torture", "xtask"]
        .into_iter()
        .flat_map(manifests)
    {
        let text = read(&manifest);
        let may_be_unsafe = manifest.ends_with("crates/os-calls/Cargo.toml");
        let manifest = manifest.display();
        let lints = if may_be_unsafe {
            "[lints.rust]\nunsafe_code = \"deny\""
        } else {
            "[lints]\nworkspace = true"
        };
        assert!(text.contains(lints), "{manifest} has lints of its own");
        let versions = text.lines().filter(|line| line.contains("version = \""));
        assert_eq!(
            versions.collect::<Vec<_>>(),
            [""; 0],
            "{manifest} names a version of its own"
        );
    }
}

fn manifests(pattern: &str) -> Vec<PathBuf> {
    match pattern.strip_suffix("/*") {
        Some(directory) => list(repository().join(directory))
            .iter()
            .map(|member| member.join("Cargo.toml"))
            // The root package has its manifest at the root.
            .filter(|manifest| manifest.exists())
            .collect(),
        None => vec![repository().join(pattern).join("Cargo.toml")],
    }
}

#[test]
fn every_file_says_first_what_it_answers_for() {
    let mut files = Vec::new();
    ["crates", "tests", "xtask"]
        .iter()
        .for_each(|directory| rust_files(&repository().join(directory), &mut files));
    assert!(
        files.len() > 80,
        "the search for source files found only {}",
        files.len()
    );
    for file in files {
        let text = read(&file);
        let name = file
            .strip_prefix(repository())
            .expect("a file of the repository")
            .display()
            .to_string();
        assert!(
            text.starts_with("//! "),
            "{name} does not open with what it answers for"
        );
    }
}

fn rust_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for path in list(directory) {
        if path.is_dir() && !path.ends_with("target") {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
