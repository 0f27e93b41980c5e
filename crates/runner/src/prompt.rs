//! The prompt a command is started with: a template and the few values that may be in it. All of them are the
//! daemon's own: numbers, names of agents, paths. What others wrote is in files, and the prompt names only their paths.

/// The template where the config names no other.
pub const BUILT_IN: &str = include_str!("prompt.md");

/// The largest template, in bytes.
pub const TEMPLATE_MAX: u64 = 64 * 1024;

/// The template with each `{name}` that is known replaced by its value, once: a value is not searched for names.
pub fn fill(template: &str, values: &[(&str, String)]) -> String {
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
                text += value;
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
    fn the_built_in_template_knows_no_name_that_has_no_value() {
        let names = [
            "agent", "author", "pr", "round", "turns", "seconds", "brief", "request", "pass",
            "fail", "settled",
        ];
        let values: Vec<_> = names.iter().map(|name| (*name, String::new())).collect();
        let filled = fill(BUILT_IN, &values);
        assert!(!filled.contains('{'), "{filled}");
    }
}
