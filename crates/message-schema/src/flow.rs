//! Rewrites JSON text as YAML on the same lines with as few quotes as YAML needs: it is shorter to read, and in a
//! ledger of JSON every double quote costs two bytes and an unescape.

/// Removes the double quotes from the strings of a text made of JSON values: words become plain, other texts get single
/// quotes. A string that needs an escape stays as it is, which is YAML too. Line breaks, including the rarer ones of
/// Unicode, must be escaped already.
pub fn flow(json: &str) -> String {
    let mut yaml = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('"') {
        yaml.push_str(&rest[..at]);
        let (text, after) = string(&rest[at + 1..]);
        push(&mut yaml, text);
        // After an unquoted key, a colon needs a blank.
        rest = match after.strip_prefix(':') {
            Some(value) => {
                yaml.push_str(": ");
                value
            }
            None => after,
        };
    }
    yaml.push_str(rest);
    yaml
}

/// Splits a JSON string, without its opening quote, into its text as written and the rest.
fn string(rest: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = rest.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    let end = end.expect("a JSON string ends");
    (&rest[..end], &rest[end + 1..])
}

fn push(yaml: &mut String, text: &str) {
    if is_plain(text) {
        yaml.push_str(text);
    } else {
        let quote = if text.contains(['\\', '\'']) {
            '"'
        } else {
            '\''
        };
        yaml.push(quote);
        yaml.push_str(text);
        yaml.push(quote);
    }
}

/// True if every YAML reader takes the unquoted text literally.
fn is_plain(text: &str) -> bool {
    const WORDS_OF_YAML: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_$-./".contains(&byte);
    text.bytes()
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'$')
        && text.bytes().all(is_word)
        && !WORDS_OF_YAML
            .iter()
            .any(|word| word.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_lose_their_quotes_and_other_texts_keep_some() {
        let json = r##"pr: "86" {"$ref":"#/$defs/x","enum":["P0","no","it's","a b"],"n":8,"t":"\u202e","q":["\"","\\"]}"##;
        let yaml = r##"pr: '86' {$ref: '#/$defs/x',enum: [P0,'no',"it's",'a b'],'n': 8,t: "\u202e",q: ["\"","\\"]}"##;
        assert_eq!(flow(json), yaml);
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i32>().prop_map(serde_json::Value::from),
            "[ -~\u{e9}\u{1f600}]{0,8}".prop_map(serde_json::Value::from),
            prop::sample::select(vec![
                "no", "Null", "1e3", "-", "a: b", "#", "$ref", "0x1F", "~", ""
            ])
            .prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
                prop::collection::btree_map("[a-zA-Z$ :#'-]{1,6}", inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_read_back_is_what_was_written(value in value()) {
            let yaml = flow(&serde_json::to_string(&value).expect("JSON"));
            let back: serde_json::Value = serde_yaml::from_str(&yaml).expect("YAML");
            prop_assert_eq!(back, value, "{}", yaml);
        }
    }
}
