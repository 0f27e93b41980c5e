//! From raw scalars to values: the schema decides which scalars are numbers; all others stay text. Values that do not
//! fit are left as text, for the schema to refuse.

use serde_json::{Map, Value};

use crate::schema::Shape;
use crate::schema::Typing;
use crate::yaml::{Content, Node};

/// Converts a tree to the types of its schema. Text is trimmed as far as the field admits it; `86`, `"86"`, `12345e7`
/// and `no` stay text in text fields; an optional field that is empty, `~` or `null` is left out.
pub fn coerce(node: &Node, shape: &Shape) -> Value {
    value(node, Some(shape))
}

fn value(node: &Node, shape: Option<&Shape>) -> Value {
    match &node.content {
        Content::Scalar(scalar) => {
            let text = shape.map_or_else(|| scalar.text.trim(), |shape| shape.trimmed(scalar));
            scalar_value(text, shape.map_or(Typing::Text, Shape::typing))
        }
        Content::List(items) => Value::Array(
            items
                .iter()
                .map(|item| value(item, shape.and_then(Shape::items)))
                .collect(),
        ),
        Content::Map(fields) => {
            let mut map = Map::new();
            for field in fields {
                match shape.and_then(|shape| shape.field(&field.key)) {
                    Some((_, false)) if field.value.is_absent() => {}
                    Some((shape, _)) => {
                        map.insert(field.key.clone(), value(&field.value, Some(shape)));
                    }
                    None => {
                        map.insert(field.key.clone(), value(&field.value, None));
                    }
                }
            }
            Value::Object(map)
        }
    }
}

fn scalar_value(text: &str, typing: Typing) -> Value {
    let typed = match typing {
        Typing::Text => None,
        Typing::Integer => integer(text),
        Typing::Number => number(text),
        Typing::Boolean => boolean(text),
    };
    typed.unwrap_or_else(|| Value::String(text.to_owned()))
}

fn integer(text: &str) -> Option<Value> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits
        .then(|| text.parse::<u64>().ok())
        .flatten()
        .map(Value::from)
}

/// Reads decimal digits with an optional fraction and exponent: no sign, no `inf`, no `.5`.
fn number(text: &str) -> Option<Value> {
    let plain = text.starts_with(|c: char| c.is_ascii_digit())
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    let number = plain.then(|| text.parse::<f64>().ok()).flatten()?;
    serde_json::Number::from_f64(number).map(Value::Number)
}

fn boolean(text: &str) -> Option<Value> {
    match text {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::parse_packet;
    use crate::schema::Schema;
    use serde_json::json;

    fn read(schema: Schema, text: &str) -> Value {
        coerce(
            &parse_packet(text.as_bytes()).expect("readable"),
            schema.shape(),
        )
    }

    #[test]
    fn texts_keep_their_letters_whatever_yaml_would_make_of_them() {
        let value = read(
            Schema::ReviewRequest,
            "pr: 86\nbranch: no\ndiff_summary: 12345e7\nbase_sha: 0012345\nside_effects: [true, 1.0, ~]\n",
        );
        let expected = json!({
            "pr": "86", "branch": "no", "diff_summary": "12345e7", "base_sha": "0012345",
            "side_effects": ["true", "1.0", "~"],
        });
        assert_eq!(value, expected);
        assert_eq!(
            read(Schema::ReviewRequest, "pr: \"86\"\n"),
            read(Schema::ReviewRequest, "pr: 86\n")
        );
    }

    #[test]
    fn numbers_are_decimal_digits_quoted_or_not() {
        let round =
            |text: &str| read(Schema::ReviewFeedback, &format!("round: {text}\n"))["round"].clone();
        assert_eq!(
            (round("2"), round("\"2\""), round("' 2 '"), round("007")),
            (json!(2), json!(2), json!(2), json!(7))
        );
        for text in [
            "0x1F",
            "1_000",
            "+5",
            "-1",
            "1.0",
            "1e3",
            "two",
            "\u{662}",
            "18446744073709551616",
        ] {
            assert_eq!(round(text), json!(text), "{text} was read as a number");
        }
    }

    #[test]
    fn measures_are_finite_decimal_numbers() {
        let cost = |text: &str| {
            read(Schema::Envelope, &format!("est_cost_usd: {text}\n"))["est_cost_usd"].clone()
        };
        assert_eq!(
            (cost("0"), cost("0.42"), cost("'1e3'")),
            (json!(0.0), json!(0.42), json!(1000.0))
        );
        for text in [
            ".inf", "nan", "inf", "1e999", "-0.5", "+5", ".5", "1_0", "0x1p3",
        ] {
            assert_eq!(cost(text), json!(text), "{text} was read as a number");
        }
    }

    #[test]
    fn booleans_are_two_words() {
        let ready = |text: &str| {
            read(Schema::ReviewLgtm, &format!("merge_ready: {text}\n"))["merge_ready"].clone()
        };
        assert_eq!(
            (ready("true"), ready("'false'")),
            (json!(true), json!(false))
        );
        for text in ["yes", "True", "1"] {
            assert_eq!(ready(text), json!(text), "{text} was read as a boolean");
        }
    }

    #[test]
    fn nothing_in_an_optional_field_means_absent() {
        for nothing in ["", "~", "null", "''", "\"  \""] {
            let value = read(
                Schema::ReviewRequest,
                &format!("repo: {nothing}\nround: {nothing}\n"),
            );
            assert_eq!(value, json!({}), "{nothing:?}");
        }
        // In quotes they are texts, and a required field cannot be absent.
        assert_eq!(
            read(Schema::ReviewRequest, "handoff_ref: 'null'\n"),
            json!({ "handoff_ref": "null" })
        );
        assert_eq!(
            read(Schema::ReviewRequest, "branch:\npr: ~\n"),
            json!({ "branch": "", "pr": "~" })
        );
    }

    #[test]
    fn only_blanks_and_a_block_s_last_line_break_stand_around_an_identifier() {
        let id = |text: &str| read(Schema::Envelope, &format!("id: {text}\n"))["id"].clone();
        for good in [
            "msg-1",
            "' msg-1\t'",
            "|\n  msg-1",
            "|-\n  msg-1",
            ">\n  msg-1 ",
        ] {
            assert_eq!(id(good), json!("msg-1"), "{good:?}");
        }
        for bad in [
            "\"msg-1\\n\"",
            "\"\\nmsg-1\"",
            "|+\n  msg-1\n",
            "msg-1\u{a0}",
            "'msg-1\u{2003}'",
            "\"msg-1\\r\"",
        ] {
            assert_ne!(id(bad), json!("msg-1"), "{bad:?}");
        }
        let envelope = read(
            Schema::Envelope,
            "from: claude\u{a0}\nto: [\"codex\\n\"]\ntype: \"question\\n\"\npriority: \u{a0}P1\nturns: 5\u{a0}\n",
        );
        let expected = json!({
            "from": "claude\u{a0}", "to": ["codex\n"], "type": "question\n", "priority": "\u{a0}P1", "turns": "5\u{a0}",
        });
        assert_eq!(envelope, expected);
    }

    #[test]
    fn no_line_break_stands_around_a_text_of_one_line() {
        let subject =
            |text: &str| read(Schema::Envelope, &format!("subject: {text}\n"))["subject"].clone();
        assert_eq!(
            (subject("'  Hm '"), subject("Hm\u{a0}"), subject("|-\n  Hm")),
            (json!("Hm"), json!("Hm"), json!("Hm"))
        );
        assert_eq!(
            (subject("|\n  Hm"), subject("\"Hm\\n\"")),
            (json!("Hm\n"), json!("Hm\n"))
        );
        assert_eq!(
            (subject("\"\\rHm\""), subject("\"Hm\\u0085 \"")),
            (json!("\rHm"), json!("Hm\u{85}"))
        );
    }

    #[test]
    fn text_is_trimmed() {
        assert_eq!(
            read(Schema::ReviewRequest, "branch: |\n\n  main\n\n"),
            json!({ "branch": "main" })
        );
    }
}
