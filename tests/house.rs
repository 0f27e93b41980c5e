//! Figures of the house, counted from the sources: lines and public names of each room, circles of imports, and names
//! that are given to several types.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::imports::{circles, imports};
use crate::list;
use crate::rust_source::{Source, sources};

/// The figures of all rooms below a folder.
#[derive(Debug)]
pub struct House {
    /// In the order of their names.
    pub rooms: Vec<RoomFigures>,
    /// The number of types with each name.
    names: BTreeMap<String, usize>,
    /// How many doc comments there are.
    pub docs: usize,
    /// The first lines of those that begin with a clause, which names its subject last.
    pub clauses: Vec<String>,
}

/// The figures of one room.
#[derive(Debug, PartialEq, Eq)]
pub struct RoomFigures {
    /// Its folder.
    pub name: String,
    /// Its lines of source, comments and blank ones included, its tests not.
    pub lines: usize,
    /// Its items that other crates may name: modules, types, functions with those of types, constants.
    pub public: usize,
    /// The number of files in each of its circles of imports, the largest first.
    circles: Vec<usize>,
}

impl House {
    /// Counts the rooms below a folder; what has no `src` is none.
    pub fn of(crates: &Path) -> Self {
        let (mut rooms, mut names) = (Vec::new(), BTreeMap::new());
        let (mut docs, mut clauses) = (0, Vec::new());
        for path in list(crates) {
            let folder = path.join("src");
            let sources = sources(&folder);
            if sources.is_empty() {
                continue;
            }
            for name in sources.iter().flat_map(Source::types) {
                *names.entry(name.to_owned()).or_default() += 1;
            }
            let lines: Vec<&String> = sources.iter().flat_map(|source| &source.docs).collect();
            docs += lines.len();
            clauses.extend(lines.into_iter().filter(|line| is_clause(line)).cloned());
            let name = path.file_name().expect("a folder has a name");
            rooms.push(RoomFigures {
                name: name.to_string_lossy().into_owned(),
                lines: sources.iter().map(|source| source.lines).sum(),
                public: sources.iter().map(Source::public_items).sum(),
                circles: circles(&imports(&folder))
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

    /// A row for each room, in Markdown.
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

    /// The sums over all rooms, a line each.
    pub fn sums(&self) -> String {
        let lines: usize = self.rooms.iter().map(|room| room.lines).sum();
        let public: usize = self.rooms.iter().map(|room| room.public).sum();
        let largest = self.rooms.iter().max_by_key(|room| room.lines);
        let largest = largest.map_or((0, ""), |room| (room.lines, room.name.as_str()));
        let circles: Vec<usize> = self
            .rooms
            .iter()
            .flat_map(|room| room.circles.clone())
            .collect();
        let longest = circles.iter().max().unwrap_or(&0);
        let given = |least: usize| self.names.values().filter(|count| **count >= least).count();
        format!(
            "{} rooms, {lines} lines, {public} public names\n\
             the largest: `{}`, {} lines\n\
             {} circles of imports, {longest} files in the largest\n\
             {} names of types: {} given more than once, {} more than twice\n\
             {} doc comments, {} begin with What, Whether or How\n",
            self.rooms.len(),
            largest.1,
            largest.0,
            circles.len(),
            given(1),
            given(2),
            given(3),
            self.docs,
            self.clauses.len(),
        )
    }
}

fn is_clause(line: &str) -> bool {
    matches!(line.split(' ').next(), Some("What" | "Whether" | "How"))
}
