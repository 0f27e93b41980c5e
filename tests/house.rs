//! Figures about the architecture, counted from the sources: lines and public names of each room, import cycles, and
//! names shared by several types.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::imports::{Graph, circles, imports};
use crate::rust_source::{Source, sources};
use crate::{list, repository};

/// The sources of one room.
#[derive(Debug)]
pub struct Room {
    /// Its folder.
    pub name: String,
    /// Its files without their tests; never empty.
    pub sources: Vec<Source>,
    /// The imports between its files.
    pub imports: Graph,
}

/// Returns the rooms of this repository, read once per program.
pub fn rooms() -> &'static [Room] {
    static ROOMS: LazyLock<Vec<Room>> = LazyLock::new(|| read(&repository().join("crates")));
    &ROOMS
}

/// Reads the rooms below a folder, sorted by name; a folder without `src` is not a room.
fn read(crates: &Path) -> Vec<Room> {
    let room = |path: PathBuf| {
        let name = path.file_name().expect("a folder has a name");
        let sources = sources(&path.join("src"));
        Room {
            name: name.to_string_lossy().into_owned(),
            imports: imports(&sources),
            sources,
        }
    };
    let rooms = list(crates).into_iter().map(room);
    rooms.filter(|room| !room.sources.is_empty()).collect()
}

/// Returns the source files of all rooms below a folder that have more than this many lines, the tests in them included.
pub fn long_files(crates: &Path, lines: usize) -> Vec<(PathBuf, usize)> {
    let files = read(crates).into_iter().flat_map(|room| {
        let folder = crates.join(&room.name).join("src");
        let file = move |source: Source| {
            let path = folder.join(source.file);
            let lines = crate::read(&path).lines().count();
            (path, lines)
        };
        room.sources.into_iter().map(file).collect::<Vec<_>>()
    });
    files.filter(|(_, found)| *found > lines).collect()
}

/// The figures of all rooms below a folder.
#[derive(Debug)]
pub struct House {
    /// The figures of each room, sorted by name.
    pub rooms: Vec<RoomFigures>,
    /// The number of types with each name.
    names: BTreeMap<String, usize>,
    /// The number of doc comments.
    pub docs: usize,
    /// The first lines of the doc comments that begin with What, Whether or How.
    pub clauses: Vec<String>,
}

/// The figures of one room.
#[derive(Debug, PartialEq, Eq)]
pub struct RoomFigures {
    /// Its folder.
    pub name: String,
    /// Its lines of source, with comments and blank lines, without tests.
    pub lines: usize,
    /// The number of items that other crates may name: modules, types, functions including those of types, constants.
    pub public: usize,
    /// The number of files in each import cycle, the largest first.
    circles: Vec<usize>,
}

impl House {
    /// Returns the figures of this repository, counted once per program.
    pub fn ours() -> &'static Self {
        static OURS: LazyLock<House> = LazyLock::new(|| House::count(rooms()));
        &OURS
    }

    /// Counts the rooms below a folder.
    pub fn of(crates: &Path) -> Self {
        Self::count(&read(crates))
    }

    fn count(all: &[Room]) -> Self {
        let (mut rooms, mut names) = (Vec::new(), BTreeMap::new());
        let (mut docs, mut clauses) = (0, Vec::new());
        for room in all {
            let Room { name, sources, .. } = room;
            for name in sources.iter().flat_map(Source::types) {
                *names.entry(name.to_owned()).or_default() += 1;
            }
            let lines: Vec<&String> = sources.iter().flat_map(|source| &source.docs).collect();
            docs += lines.len();
            clauses.extend(lines.into_iter().filter(|line| is_clause(line)).cloned());
            rooms.push(RoomFigures {
                name: name.clone(),
                lines: sources.iter().map(|source| source.lines).sum(),
                public: sources.iter().map(Source::public_items).sum(),
                circles: circles(&room.imports)
                    .iter()
                    .map(|circle| circle.len())
                    .collect(),
            });
        }
        Self {
            rooms,
            names,
            docs,
            clauses,
        }
    }

    /// Formats a row for each room, in Markdown.
    pub fn table(&self) -> String {
        let mut table = "| room | lines | public names |\n|---|---:|---:|\n".to_owned();
        for room in &self.rooms {
            writeln!(
                table,
                "| `{}` | {} | {} |",
                room.name, room.lines, room.public
            )
            .expect("memory");
        }
        table
    }

    /// Returns the figures of `docs/architecture.md` that the sources alone give, each with its name there.
    pub fn figures(&self) -> [(&'static str, String); 5] {
        let lines = self.rooms.iter().map(|room| room.lines);
        let largest = lines.clone().max().unwrap_or_default();
        let public: usize = self.rooms.iter().map(|room| room.public).sum();
        let circles = || self.rooms.iter().flat_map(|room| &room.circles);
        let given = |least: usize| {
            let names = self.names.values().filter(|count| **count >= least);
            in_thousands(names.count())
        };
        [
            ("crates of the product", self.rooms.len().to_string()),
            (
                "lines of the largest, of the whole",
                format!("{}, {}", in_thousands(largest), in_thousands(lines.sum())),
            ),
            (
                "circles of imports, files in the largest",
                format!("{}, {}", circles().count(), circles().max().unwrap_or(&0)),
            ),
            (
                "names of types given more than once, more than twice",
                format!("{} and {} of {}", given(2), given(3), given(1)),
            ),
            (
                "public names a crate",
                (public / self.rooms.len().max(1)).to_string(),
            ),
        ]
    }

    /// Formats the figures, and the number of doc comments that begin with a clause, one per line.
    pub fn sums(&self) -> String {
        let mut sums = String::new();
        for (figure, now) in self.figures() {
            writeln!(sums, "{figure}: {now}").expect("memory");
        }
        let clauses = self.clauses.len();
        sums + &format!(
            "{} doc comments, {clauses} begin with What, Whether or How\n",
            self.docs
        )
    }
}

/// Formats a number with spaces as thousands separators.
fn in_thousands(number: usize) -> String {
    match (number / 1000, number % 1000) {
        (0, small) => small.to_string(),
        (thousands, rest) => format!("{thousands} {rest:03}"),
    }
}

fn is_clause(line: &str) -> bool {
    matches!(line.split(' ').next(), Some("What" | "Whether" | "How"))
}
