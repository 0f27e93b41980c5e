//! `cargo xtask site`: builds the documents as a site with mdBook into `target/site`, and follows its links.
//!
//! The tests follow the links of the pages' sources; this follows those of the built pages, with mdBook's anchors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use settled_tests::tool::Tool;
use settled_tests::{binaries, repository};

/// The program that builds the site on every machine.
const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    asked: &["--version"],
    options: &["--no-default-features", "--features", "search"],
};

/// Where to find mdBook.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Path of mdBook [default: the one on the PATH if it is 0.5.4, else one installed into target/]
    #[arg(long, value_name = "FILE")]
    mdbook: Option<PathBuf>,
}

/// Builds the site; returns true if no link is broken.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let installed = || MDBOOK.program(binaries::target());
    let mdbook = args.mdbook.clone().map_or_else(installed, Ok)?;
    let site = binaries::target().join("site");
    let built = Command::new(&mdbook)
        .args(["build", "--dest-dir"])
        .arg(&site)
        .arg(repository().join("docs"))
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("{}: {error}", mdbook.display()))?;
    if !built.success() {
        return Ok(false);
    }
    let site = Site::read(&site)?;
    let broken = site.broken();
    for line in &broken {
        println!("{line}");
    }
    println!(
        "{} pages, {} links, {} broken: {}",
        site.pages.len(),
        site.pages
            .values()
            .map(|page| page.links.len())
            .sum::<usize>(),
        broken.len(),
        site.root.join("index.html").display()
    );
    Ok(broken.is_empty())
}

/// The built pages.
struct Site {
    root: PathBuf,
    /// The pages by their path from the root.
    pages: BTreeMap<PathBuf, Page>,
}

/// The anchors and links of a page.
#[derive(Default)]
struct Page {
    anchors: BTreeSet<String>,
    links: Vec<String>,
}

impl Site {
    fn read(root: &Path) -> Result<Self, String> {
        let mut pages = BTreeMap::new();
        for entry in
            std::fs::read_dir(root).map_err(|error| format!("{}: {error}", root.display()))?
        {
            let path = entry.map_err(|error| error.to_string())?.path();
            let name = PathBuf::from(path.file_name().unwrap_or_default());
            // The page for a missing one is served under any path, so its links start at the server's root.
            if path
                .extension()
                .is_some_and(|extension| extension == "html")
                && name != Path::new("404.html")
            {
                let html = std::fs::read_to_string(&path)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                pages.insert(name, Page::of(&html));
            }
        }
        Ok(Self {
            root: root.to_owned(),
            pages,
        })
    }

    /// Lists the broken links, one per line.
    fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for (from, page) in &self.pages {
            for link in &page.links {
                if let Some(why) = self.fault(from, link) {
                    broken.push(format!("{}: {link}: {why}", from.display()));
                }
            }
        }
        broken
    }

    fn fault(&self, from: &Path, link: &str) -> Option<&'static str> {
        let is_elsewhere = ["http://", "https://", "data:", "mailto:", "javascript:"];
        if is_elsewhere.iter().any(|start| link.starts_with(start)) {
            return None;
        }
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let path = if path.is_empty() {
            from.to_owned()
        } else {
            PathBuf::from(path)
        };
        if path.components().any(|part| part == Component::ParentDir) || path.is_absolute() {
            return Some("it leaves the site");
        }
        if !self.root.join(&path).is_file() {
            return Some("no such file");
        }
        let is_missing = |page: &Page| !anchor.is_empty() && !page.anchors.contains(anchor);
        self.pages
            .get(&path)
            .filter(|page| is_missing(page))
            .map(|_| "no such anchor")
    }
}

impl Page {
    fn of(html: &str) -> Self {
        let values = |name: &str| {
            let attribute = format!(" {name}=\"");
            let starts = html.split(&attribute).skip(1);
            let values = starts.filter_map(|rest| rest.split('"').next());
            values
                .map(|value| value.replace("&amp;", "&"))
                .collect::<Vec<_>>()
        };
        Self {
            anchors: values("id").into_iter().collect(),
            links: [values("href"), values("src")].concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(pages: &[(&str, &str)]) -> (tempfile::TempDir, Site) {
        let root = tempfile::tempdir().expect("a directory");
        for (name, html) in pages {
            std::fs::write(root.path().join(name), html).expect("written");
        }
        let site = Site::read(root.path()).expect("read");
        (root, site)
    }

    #[test]
    fn a_link_to_nothing_is_broken_and_one_to_a_heading_is_not() {
        let (_root, site) = site(&[
            (
                "a.html",
                r##"<h2 id="x">X</h2> <a href="b.html#y">to b</a> <a href="#x">here</a> <img src="p.svg">"##,
            ),
            (
                "b.html",
                r##"<a href="a.html#z">none</a> <a href="../c.html">out</a> <a href="https://example.com/d">d</a>"##,
            ),
        ]);
        assert_eq!(
            site.broken(),
            [
                "a.html: b.html#y: no such anchor",
                "a.html: p.svg: no such file",
                "b.html: a.html#z: no such anchor",
                "b.html: ../c.html: it leaves the site",
            ]
        );
    }
}
