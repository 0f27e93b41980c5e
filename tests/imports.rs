//! The imports between the files of a crate, and their cycles.
//!
//! A file imports from another one if its code names an item that the other one defines, in a `use`, in a written-out
//! path, or in serde's `deserialize_with` and its like. That holds in both directions between a file and the head of
//! its folder. `mod name;` imports nothing, and neither does a re-export: the name counts for the file that defines it.
//! A call of a method names no file, so it is not seen.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust_source::{Source, Token};

type Module = Vec<String>;

/// The imports inside one crate: for each file the files it imports from, by path in the source folder.
pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// A name that a `use` brings into a module.
#[derive(Debug)]
struct Use {
    name: String,
    /// The path from the crate's root; `None` if it comes from another crate.
    path: Option<Vec<String>>,
    /// True if other modules may import it from here.
    passed_on: bool,
}

struct Crate {
    modules: BTreeMap<Module, Read>,
}

struct Read {
    file: String,
    uses: Vec<Use>,
    /// The tokens of the file without its `use`s.
    body: Vec<Token>,
}

/// Finds the imports of the crate with these sources.
pub fn imports(sources: &[Source]) -> Graph {
    let names: BTreeSet<Module> = sources.iter().map(|source| source.module.clone()).collect();
    let modules = sources.iter().map(|source| read(source, &names));
    let all = Crate {
        modules: modules.collect(),
    };
    let imports_of = |(module, read): (&Module, &Read)| {
        let targets = all.targets(module, read).into_iter();
        let files = targets.map(|target| all.modules[&target].file.clone());
        let mut files: BTreeSet<String> = files.collect();
        files.remove(&read.file);
        (read.file.clone(), files)
    };
    all.modules.iter().map(imports_of).collect()
}

/// Merges the graph by folders: a top-level module with everything below it is one folder.
pub fn folders(graph: &Graph) -> Graph {
    let top = |file: &String| {
        let first = file.split('/').next().unwrap_or(file);
        first.strip_suffix(".rs").unwrap_or(first).to_owned()
    };
    let mut folders = Graph::new();
    for (file, targets) in graph {
        let targets = targets.iter().map(top).filter(|name| *name != top(file));
        folders.entry(top(file)).or_default().extend(targets);
    }
    folders
}

/// Returns the cycles of a graph: the largest sets whose members all reach each other. The longest comes first.
pub fn circles(graph: &Graph) -> Vec<BTreeSet<&str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = graph
        .keys()
        .map(|name| (name.as_str(), reached(graph, name)))
        .collect();
    let mut circles: Vec<BTreeSet<&str>> = Vec::new();
    for name in graph.keys() {
        if circles.iter().any(|circle| circle.contains(name.as_str())) {
            continue;
        }
        let is_back = |other: &&&str| reach[**other].contains(name.as_str());
        let circle: BTreeSet<&str> = reach[name.as_str()]
            .iter()
            .filter(is_back)
            .copied()
            .collect();
        if circle.len() > 1 {
            circles.push(circle);
        }
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// Returns the floors of a graph, the lowest first: what imports nothing, what imports only from below, and so on. A cycle
/// is on one floor.
pub fn floors(graph: &Graph) -> Vec<Vec<&str>> {
    let circles = circles(graph);
    let is_back = |from: &str, to: &str| {
        let mut circles = circles.iter();
        circles.any(|circle| circle.contains(from) && circle.contains(to))
    };
    let mut above: BTreeSet<&str> = graph.keys().map(String::as_str).collect();
    let mut floors = Vec::new();
    while !above.is_empty() {
        let is_above = |name: &&str| {
            let mut reached = reached(graph, name).into_iter();
            reached
                .any(|target| above.contains(target) && target != *name && !is_back(name, target))
        };
        let (higher, floor): (_, BTreeSet<&str>) = above.iter().copied().partition(is_above);
        above = higher;
        floors.push(floor.into_iter().collect());
    }
    floors
}

fn reached<'g>(graph: &'g Graph, from: &str) -> BTreeSet<&'g str> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&str> = vec![from];
    while let Some(name) = next.pop() {
        for target in &graph[name] {
            if seen.insert(target.as_str()) {
                next.push(target);
            }
        }
    }
    seen
}

impl Crate {
    /// The modules whose names this file uses.
    fn targets(&self, module: &Module, read: &Read) -> BTreeSet<Module> {
        let mut targets = BTreeSet::new();
        for used in &read.uses {
            let is_used = || read.body.iter().any(|token| token.text == used.name);
            let Some(path) = used.path.as_ref().filter(|_| !used.passed_on || is_used()) else {
                continue;
            };
            // An imported module counts where a name is taken from it.
            if !self.modules.contains_key(path) {
                targets.extend(self.home(path, 0));
            }
        }
        for path in paths(&read.body) {
            let used = read.uses.iter().find(|used| used.name == path[0]);
            let whole = match used {
                Some(Use {
                    path: Some(before), ..
                }) => Some([before, &path[1..]].concat()),
                Some(Use { path: None, .. }) => None,
                None => absolute(module, &path, |name| self.modules.contains_key(name)),
            };
            targets.extend(whole.and_then(|whole| self.home(&whole, 0)));
        }
        targets
    }

    /// The module that defines the path's name; `None` for a re-export from another crate.
    fn home(&self, path: &[String], depth: usize) -> Option<Module> {
        let mut length = 0;
        while length < path.len() && self.modules.contains_key(&path[..=length]) {
            length += 1;
        }
        let (module, rest) = path.split_at(length);
        let Some((name, rest)) = rest.split_first() else {
            return Some(module.to_vec());
        };
        let passed = self.modules[module]
            .uses
            .iter()
            .find(|used| used.name == *name);
        match passed {
            Some(used) if depth < 8 => {
                let before = used.path.as_ref()?;
                self.home(&[before, rest].concat(), depth + 1)
            }
            Some(_) | None => Some(module.to_vec()),
        }
    }
}

fn read(source: &Source, modules: &BTreeSet<Module>) -> (Module, Read) {
    let (mut uses, mut body) = (Vec::new(), Vec::new());
    let tokens = &source.tokens;
    let mut index = 0;
    while index < tokens.len() {
        // `use<'a>` in a type captures lifetimes; it imports nothing.
        let captures = tokens.get(index + 1).is_some_and(|next| next.text == "<");
        if tokens[index].text != "use" || captures {
            body.push(tokens[index].clone());
            index += 1;
            continue;
        }
        let passed_on = index > 0 && matches!(tokens[index - 1].text.as_str(), "pub" | ")");
        let length = tokens[index..]
            .iter()
            .position(|token| token.text == ";")
            .expect("a use ends");
        let mut tree = &tokens[index + 1..index + length];
        for (path, name) in leaves(&mut tree, &[]) {
            uses.push(Use {
                path: absolute(&source.module, &path, |name| modules.contains(name)),
                name,
                passed_on,
            });
        }
        index += length;
    }
    let file = source.file.display().to_string();
    (source.module.clone(), Read { file, uses, body })
}

/// The paths that one branch of a `use` names, each with its local name; advances `tree` past the branch.
fn leaves(tree: &mut &[Token], before: &[String]) -> Vec<(Vec<String>, String)> {
    let mut path = before.to_vec();
    while let Some((token, rest)) = tree.split_first() {
        *tree = rest;
        match token.text.as_str() {
            "{" => {
                let mut found = Vec::new();
                while tree.first().is_some_and(|token| token.text != "}") {
                    found.extend(leaves(tree, &path));
                    if tree.first().is_some_and(|token| token.text == ",") {
                        *tree = &tree[1..];
                    }
                }
                *tree = tree.get(1..).unwrap_or_default();
                return found;
            }
            "self" if !before.is_empty() && path == before => {}
            "as" => {
                let name = tree[0].text.clone();
                *tree = &tree[1..];
                return vec![(path, name)];
            }
            "::" => {}
            name => path.push(name.to_owned()),
        }
        if matches!(
            tree.first().map(|token| token.text.as_str()),
            Some("," | "}")
        ) {
            break;
        }
    }
    let name = path.last().cloned().unwrap_or_default();
    vec![(path, name)]
}

/// Resolves a path written in a module to one from the crate's root; `None` if it leads elsewhere.
fn absolute(
    module: &[String],
    path: &[String],
    is_module: impl Fn(&[String]) -> bool,
) -> Option<Vec<String>> {
    let supers = path.iter().take_while(|name| *name == "super").count();
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => absolute_of(module, &path[1..]),
        "super" => {
            let above = module.len().checked_sub(supers)?;
            Some([&module[..above], &path[supers..]].concat())
        }
        first => {
            let below = [module, &[first.to_owned()]].concat();
            is_module(&below).then(|| [module, path].concat())
        }
    }
}

fn absolute_of(module: &[String], rest: &[String]) -> Option<Vec<String>> {
    match rest.first().map(String::as_str) {
        Some("super") => Some([&module[..module.len() - 1], &rest[1..]].concat()),
        Some(_) | None => Some([module, rest].concat()),
    }
}

/// The written-out paths of two or more names.
fn paths(tokens: &[Token]) -> Vec<Vec<String>> {
    let is_name = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let mut found = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        let mut path = Vec::new();
        while let Some(token) = tokens.get(index).filter(|token| is_name(&token.text)) {
            path.push(token.text.clone());
            let goes_on = tokens.get(index + 1).is_some_and(|next| next.text == "::");
            index += if goes_on { 2 } else { 1 };
            if !goes_on {
                break;
            }
        }
        if path.len() > 1 {
            found.push(path);
        } else if path.is_empty() {
            index += 1;
        }
    }
    found
}
