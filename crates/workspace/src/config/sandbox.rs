//! Reads `sandbox` in an agent's section: if its command runs inside walls, and what it may use despite them.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use ::runner::sandbox::{Hosts, Sandbox};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The things a command may use in a sandbox besides the code, the folder of its run and the programs of the system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "true, false or a table")]
pub struct SandboxSection {
    /// The hosts that it may reach: none if empty, all if the only one is `*`.
    #[serde(deserialize_with = "network")]
    pub network: Hosts,
    /// More files and directories that it may read: absolute paths, or with `~/` below the home directory.
    #[serde(deserialize_with = "reads")]
    pub reads: Vec<PathBuf>,
    /// Variables of the daemon's environment to pass on.
    #[serde(deserialize_with = "names")]
    pub env: Vec<String>,
}

impl SandboxSection {
    /// The program that builds the walls.
    pub const PROGRAM: &str = ::runner::sandbox::PROGRAM;

    /// The sandbox for a command of an agent with these variables, in this workspace.
    pub fn around<'n>(&self, root: &Path, env: impl Iterator<Item = &'n String>) -> Sandbox {
        let home = std::env::var_os("HOME").unwrap_or_default();
        let whole = |path: &PathBuf| match path.strip_prefix("~") {
            Ok(below) => Path::new(&home).join(below),
            Err(_) => path.clone(),
        };
        Sandbox {
            root: root.to_owned(),
            reads: self.reads.iter().map(whole).collect(),
            env: self.env.iter().cloned().chain(env.cloned()).collect(),
            hosts: self.network.clone(),
        }
    }
}

/// Reads `true`, `false`, or a table, which means `true`.
pub(super) fn section<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SandboxSection>, D::Error> {
    deserializer.deserialize_any(Switch)
}

struct Switch;

impl<'de> Visitor<'de> for Switch {
    type Value = Option<SandboxSection>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false or a table with `network`, `reads` and `env`")
    }

    fn visit_bool<E: Error>(self, is_on: bool) -> Result<Self::Value, E> {
        Ok(is_on.then(SandboxSection::default))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        SandboxSection::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}

fn network<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Hosts, D::Error> {
    let names = texts(deserializer, "sandbox.network", "a list of hosts")?;
    if names == ["*"] {
        return Ok(Hosts::Any);
    }
    let hosts = names.into_iter().map(TryFrom::try_from);
    let hosts = hosts.collect::<Result<_, _>>();
    hosts
        .map(Hosts::These)
        .map_err(|error| Error::custom(format!("sandbox.network: {error}")))
}

fn reads<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    let expected = "a list of whole paths, or of paths that begin with `~/`";
    let paths = texts(deserializer, "sandbox.reads", expected)?;
    let is_whole = |path: &String| path.starts_with('/') || path.starts_with("~/");
    match paths.iter().find(|path| !is_whole(path)) {
        Some(path) => Err(Error::custom(format!(
            "sandbox.reads names `{}`, expected {expected}",
            message_schema::line::escaped(path)
        ))),
        None if paths.iter().any(|path| is_root(path)) => Err(Error::custom(format!(
            "sandbox.reads names the root directory, and a sandbox hides the rest of the machine from its command, expected \
             {expected}, below it"
        ))),
        None => Ok(paths.into_iter().map(PathBuf::from).collect()),
    }
}

/// True if an absolute path leads to the root, judged by its text alone.
fn is_root(path: &str) -> bool {
    let depth = Path::new(path)
        .components()
        .fold(0, |depth, part| match part {
            Component::Normal(_) => depth + 1,
            Component::ParentDir => usize::saturating_sub(depth, 1),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => depth,
        });
    path.starts_with('/') && depth == 0
}

fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let expected = "a list of names of variables";
    let names = texts(deserializer, "sandbox.env", expected)?;
    match names
        .iter()
        .find(|name| name.is_empty() || name.contains('='))
    {
        Some(name) => Err(Error::custom(format!(
            "sandbox.env names `{}`, expected {expected}",
            message_schema::line::escaped(name)
        ))),
        None => Ok(names),
    }
}

fn texts<'de, D: Deserializer<'de>>(
    deserializer: D,
    key: &str,
    expected: &str,
) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)
        .map_err(|_| Error::custom(format!("{key} is not a list of texts, expected {expected}")))?;
    if texts.iter().any(|text| text.contains('\0')) {
        return Err(Error::custom(format!(
            "{key} has a NUL, expected {expected}"
        )));
    }
    Ok(texts)
}
