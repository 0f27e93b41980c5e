//! Makes the prompt of a command from a template and a few values. All values are the daemon's own: numbers, names of
//! agents, paths. Text by others stays in files, and the prompt only names their paths.

use serde::de::IgnoredAny;

/// The template that is used if the config names no other.
pub const BUILT_IN: &str = include_str!("prompt.md");

/// The largest template, in bytes.
pub const TEMPLATE_MAX: u64 = 64 * 1024;

/// Replaces each known `{name}` in the template once; does not search the values for names.
pub fn fill(template: &str, values: &[(&str, String)]) -> String {
    fill_by(template, values, |value, _| value.to_owned())
}

/// Replaces the names in a word of a command or a variable of its environment. Inside quotes, in a JSON document or as
/// `"{name}"`, it escapes the value: a path may contain a quote or a backslash.
pub fn fill_word(template: &str, values: &[(&str, String)]) -> String {
    let is_document =
        template.starts_with('{') && serde_json::from_str::<IgnoredAny>(template).is_ok();
    fill_by(template, values, |value, is_quoted| {
        if is_document {
            let escaped = serde_json::to_string(value).expect("a text is JSON");
            escaped[1..escaped.len() - 1].to_owned()
        } else if is_quoted {
            // TOML and a shell read the same escapes, and both keep a line break.
            value.replace('\\', r"\\").replace('"', r#"\""#)
        } else {
            value.to_owned()
        }
    })
}

/// Replaces each known name by what `put` makes of its value; `put` learns if the name alone is in double quotes.
fn fill_by(
    template: &str,
    values: &[(&str, String)],
    put: impl Fn(&str, bool) -> String,
) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        text += before;
        let known = values.iter().find_map(|(name, value)| {
            let after = from
                .strip_prefix('{')?
                .strip_prefix(name)?
                .strip_prefix('}')?;
            Some((value, after))
        });
        match known {
            Some((value, after)) => {
                let is_quoted = before.ends_with('"') && after.starts_with('"');
                text += &put(value, is_quoted);
                rest = after;
            }
            None => {
                text.push('{');
                rest = &from[1..];
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_value_brings_is_not_filled_in_again() {
        let values = [
            ("pr", "86".to_owned()),
            ("brief", "/x/{pr}/brief.yaml".to_owned()),
        ];
        assert_eq!(
            fill("{pr}: {brief} {json: {}} {", &values),
            "86: /x/{pr}/brief.yaml {json: {}} {"
        );
    }

    #[test]
    fn a_value_in_quotes_is_escaped_and_any_other_is_put_as_it_is() {
        let values = [
            ("run", r#"/my "own" \ room"#.to_owned()),
            ("schema_json", r#"{"a":1}"#.to_owned()),
        ];
        for (word, filled) in [
            ("{run}", r#"/my "own" \ room"#),
            ("--add-dir={run}/x", r#"--add-dir=/my "own" \ room/x"#),
            ("{schema_json}", r#"{"a":1}"#),
            // It is not alone in its quotes.
            (r#"a="{run}/x""#, r#"a="/my "own" \ room/x""#),
            (r#"a="x/{run}""#, r#"a="x//my "own" \ room""#),
            (r#"a.command="{run}""#, r#"a.command="/my \"own\" \\ room""#),
            (
                r#"{"deny":{"{run}/*":"x"},"a":"{run}"}"#,
                r#"{"deny":{"/my \"own\" \\ room/*":"x"},"a":"/my \"own\" \\ room"}"#,
            ),
        ] {
            assert_eq!(fill_word(word, &values), filled);
        }
    }

    #[test]
    fn the_built_in_template_is_within_the_limit_and_knows_no_name_that_has_no_value() {
        assert_eq!(TEMPLATE_MAX, 65_536);
        assert!(BUILT_IN.len() < 65_536);
        let names = [
            "agent", "author", "pr", "round", "turns", "seconds", "brief", "request", "pass",
            "fail", "settled",
        ];
        let values: Vec<_> = names.iter().map(|name| (*name, String::new())).collect();
        let filled = fill(BUILT_IN, &values);
        assert!(!filled.contains('{'), "{filled}");
    }
}
