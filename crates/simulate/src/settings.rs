//! Reads the `config` of a scenario with the reader of `settled.toml`, so that an unknown key is `config_invalid` here
//! too, at its position in the scenario.

use std::path::Path;

use message_schema::yaml::{Content, Node, Style};
use message_schema::{Place, double_quoted};
use workspace::config::{Config, ConfigError};

use super::reader::ParseError;

/// Reads a mapping as a config.
pub(super) fn read(node: &Node) -> Result<Config, ParseError> {
    let mut toml = Toml::default();
    toml.table(node, &[])?;
    Config::parse(&toml.text, Path::new(workspace::config::FILE)).map_err(|error| match error {
        ConfigError::Invalid { line, message, .. } => ParseError::at(
            toml.places.get(line - 1).copied().unwrap_or(node.place),
            message,
        ),
        ConfigError::Unreadable { .. } => unreachable!("a text in memory is read already"),
    })
}

/// The config in TOML; each line knows its origin in the scenario.
#[derive(Default)]
struct Toml {
    text: String,
    places: Vec<Place>,
}

impl Toml {
    fn line(&mut self, text: &str, place: Place) {
        self.text += text;
        self.text.push('\n');
        self.places.push(place);
    }

    /// Plain values come first: after the header of a subtable they would belong to it.
    fn table(&mut self, node: &Node, path: &[String]) -> Result<(), ParseError> {
        let Content::Map(fields) = &node.content else {
            return Err(ParseError::at(
                node.place,
                format!("config is {}, expected a mapping", node.kind()),
            ));
        };
        let (tables, values): (Vec<_>, Vec<_>) = fields
            .iter()
            .partition(|field| matches!(field.value.content, Content::Map(_)));
        for field in values {
            let line = format!("{} = {}", double_quoted(&field.key), inline(&field.value)?);
            self.line(&line, field.key_place);
        }
        for field in tables {
            let path: Vec<String> = path
                .iter()
                .cloned()
                .chain([double_quoted(&field.key)])
                .collect();
            self.line(&format!("[{}]", path.join(".")), field.key_place);
            self.table(&field.value, &path)?;
        }
        Ok(())
    }
}

fn inline(node: &Node) -> Result<String, ParseError> {
    match &node.content {
        Content::Scalar(scalar) if scalar.style == Style::Plain && is_bare(&scalar.text) => {
            Ok(scalar.text.clone())
        }
        Content::Scalar(scalar) => Ok(double_quoted(&scalar.text)),
        Content::List(items) => {
            let items: Result<Vec<String>, ParseError> = items.iter().map(inline).collect();
            Ok(format!("[{}]", items?.join(", ")))
        }
        Content::Map(_) => Err(ParseError::at(
            node.place,
            "a list in the config holds no mappings",
        )),
    }
}

/// True if YAML and TOML read the text as the same integer or boolean.
fn is_bare(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_integer = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    matches!(text, "true" | "false") || (is_integer && (digits == "0" || !digits.starts_with('0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Config, String> {
        let node = message_schema::parse_packet(text.as_bytes()).expect("a mapping");
        read(&node).map_err(|wrong| format!("{}: {}", wrong.place, wrong.message))
    }

    #[test]
    fn the_keys_are_those_of_the_file() {
        let written =
            "agents:\n  codex: {roles: [reviewer]}\nrounds:\n  max: 3\nthreads: explicit\n";
        let file =
            "threads = \"explicit\"\n[rounds]\nmax = 3\n[agents.codex]\nroles = [\"reviewer\"]\n";
        let file = Config::parse(file, Path::new("settled.toml")).expect("valid");
        assert_eq!(read_text(written), Ok(file));
    }

    #[test]
    fn what_the_file_would_not_take_is_refused_at_its_place() {
        let wrong = read_text("gate:\n  require_validation: true\nrounds:\n  max: 4\n");
        assert_eq!(
            wrong,
            Err("4:3: rounds.max is 4, expected 1, 2 or 3".to_owned())
        );
        let wrong = read_text("rounds: {maks: 2}\n").expect_err("unknown");
        assert!(wrong.starts_with("1:10: unknown field `maks`"), "{wrong}");
    }
}
