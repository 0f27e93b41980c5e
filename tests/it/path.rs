//! Takes the way of a message that `docs/architecture.md` draws from the code.
//!
//! Each stage makes a value that the next one takes. The test follows the calls of the daemon's pass in source order and
//! notes which crate first makes each of these values. It fails when a stage moves to another crate, when two swap
//! places, and when one is missing, and also when the headings of the page are in another order. It follows the delivery
//! from its own call, because a pass first delivers what the pass before it committed. It runs no code, follows only the
//! accepted message, knows no traits, and proves nothing about what a stage does.

use settled_tests::call_path::SourceIndex;
use settled_tests::{packages, read, repository, write};

/// The value that each stage makes, in the order of the page.
const STAGE_VALUES: [&str; 6] = [
    "OutboxFile",
    "Message",
    "Valid",
    "Accepted",
    "EntryDraft",
    "Committed",
];

/// The values of the delivery: the file to make, and the note that it is made.
const DELIVERY_VALUES: [&str; 2] = ["ExpectedFile", "Slot"];

#[test]
fn a_message_takes_the_way_the_page_draws() {
    let mailroom = ("daemon", "Mailroom");
    let crates = packages::built_into(mailroom.0, &[]);
    let index = SourceIndex::read(&repository().join("crates"), &crates);
    let mut rooms = vec![mailroom.0.to_owned()];
    rooms.extend(index.makers(mailroom, "pass", &STAGE_VALUES));
    rooms.extend(index.makers(mailroom, "deliver_slice", &DELIVERY_VALUES));
    rooms.dedup();
    let page = read(repository().join("docs/architecture.md"));
    assert_eq!(drawn(&page), [rooms.join(" -> ")]);
    // The judgement is entered before it makes a value: its `read` calls the parser.
    let parser = rooms.iter().position(|room| room == "message-schema");
    rooms.insert(parser.expect("the parser"), "judgement".to_owned());
    assert_eq!(headings(&page), rooms);
}

/// The rooms that the headings of the way name, in their order.
fn headings(page: &str) -> Vec<&str> {
    let way = page
        .split("\n## ")
        .find(|part| part.starts_with("The way of a message"));
    let headings = way
        .expect("the way")
        .lines()
        .filter_map(|line| line.strip_prefix("### "));
    let rooms = headings.filter_map(|heading| heading.split_once(": "));
    rooms
        .map(|(room, _)| room.trim_start_matches("Back in "))
        .collect()
}

/// The lines between the marks of the drawing, without the fence.
fn drawn(page: &str) -> Vec<&str> {
    let between = page
        .split("<!-- path -->")
        .nth(1)
        .expect("a drawing between two marks");
    between
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("```"))
        .collect()
}

#[test]
fn the_way_follows_the_text_through_fields_results_and_crates_but_no_failure() {
    let pass = |body: &str| {
        let folder = settled_tests::scratch();
        for (file, text) in [
            (
                "low/src/lib.rs",
                "mod read;\npub use read::parse;\npub use read::Read;\npub struct Kept;\n\
                 pub struct Shelf;\nimpl Shelf { pub fn keep(&self, _: &high::Checked) -> Kept { Kept {} } }\n",
            ),
            (
                "low/src/read.rs",
                "pub struct Read { text: String }\npub fn parse() -> Result<Read, ()> { Ok(Read { text: s() }) }\n",
            ),
            (
                "high/src/lib.rs",
                "pub struct Checked(());\nimpl Checked { pub fn of(_: &low::Read) -> Self { Self(()) } }\n",
            ),
        ] {
            write_below(folder.path(), file, text);
        }
        let main = format!(
            "use low::{{Shelf, parse}};\npub struct Desk {{ shelf: Shelf }}\nimpl Desk {{\npub fn pass(&self) {{\n{body}\n}}\n}}\n"
        );
        write_below(folder.path(), "main/src/lib.rs", &main);
        let crates = ["high", "low", "main"].map(str::to_owned).into();
        let index = SourceIndex::read(folder.path(), &crates);
        index.makers(("main", "Desk"), "pass", &["Read", "Checked", "Kept"])
    };
    assert_eq!(
        pass(
            "let read = parse().map_err(|_| self.shelf.keep(x))?;\n\
             let Self { shelf, .. } = self;\n\
             match Ok(high::Checked::of(&read)) { Err(_) => drop(low::Kept {}), Ok(it) => shelf.keep(&it) }"
        ),
        ["low", "high", "low"]
    );
    assert_eq!(
        pass("let checked = high::Checked::of(&x);\nself.shelf.keep(&checked);\nparse();"),
        ["high", "low"]
    );
}

fn write_below(folder: &std::path::Path, file: &str, text: &str) {
    let path = folder.join(file);
    let parent = path.parent().expect("a file is in a folder");
    std::fs::create_dir_all(parent).expect("a folder");
    write(path, text);
}
