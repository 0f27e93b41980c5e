//! The demands of a schema on a document, compiled once from its text, and the breaches found in one document.
//!
//! This is the part of JSON Schema that our schemas use and no more: compiling a keyword that [`Demands::of`] does not
//! know panics, so a schema cannot demand what this code does not check. The tests compare every breach with those of a
//! complete validator.

use serde_json::{Map, Number, Value};

use super::pattern::Pattern;
use super::{Breach, Step};

/// The number of breaches in one document after which the rest is not judged: more than any report names.
const ENOUGH: usize = 1_000;

/// The demands of a schema on one value.
#[derive(Debug, Default)]
pub(super) struct Demands {
    kinds: Vec<Kind>,
    words: Option<Vec<String>>,
    constant: Option<String>,
    never: Option<Box<Demands>>,
    pattern: Option<Pattern>,
    format: Option<fn(&str) -> bool>,
    length_min: Option<u64>,
    length_max: Option<u64>,
    minimum: Option<u64>,
    maximum: Option<u64>,
    items_min: Option<u64>,
    items_max: Option<u64>,
    items: Option<Box<Demands>>,
    fields: Vec<(String, Demands)>,
    required: Vec<String>,
    /// True if the mapping around this field requires it.
    is_required: bool,
    /// True if fields that the schema does not name are breaches.
    is_closed: bool,
    /// A value that fits the first must fit the second too.
    conditional: Option<Box<(Demands, Demands)>>,
}

/// A `type` of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Object,
    Array,
    Text,
    Boolean,
    Integer,
    Number,
}

impl Demands {
    /// Compiles one of our schemas.
    ///
    /// # Panics
    ///
    /// On a keyword, a type or a format that is not one of those our schemas use.
    pub(super) fn of(schema: &Value) -> Self {
        let mut demands = Self::default();
        for (keyword, value) in mapping(schema) {
            match keyword.as_str() {
                "$id" | "$schema" | "title" | "description" | "default" | "examples" => {}
                note if note.starts_with("x-") => {}
                "type" => demands.kinds = kinds(value),
                "enum" => demands.words = Some(texts(value)),
                "const" => demands.constant = Some(text(value).to_owned()),
                "not" => demands.never = Some(Box::new(Self::of(value))),
                "pattern" => demands.pattern = Some(Pattern::of(text(value))),
                "format" => demands.format = Some(format(text(value))),
                "minLength" => demands.length_min = Some(count(value)),
                "maxLength" => demands.length_max = Some(count(value)),
                "minimum" => demands.minimum = Some(count(value)),
                "maximum" => demands.maximum = Some(count(value)),
                "minItems" => demands.items_min = Some(count(value)),
                "maxItems" => demands.items_max = Some(count(value)),
                "items" => demands.items = Some(Box::new(Self::of(value))),
                "properties" => {
                    let fields = mapping(value).iter();
                    demands.fields = fields
                        .map(|(name, field)| (name.clone(), Self::of(field)))
                        .collect();
                }
                "required" => demands.required = texts(value),
                "additionalProperties" => demands.is_closed = *value == Value::Bool(false),
                "if" => {
                    let then = Self::of(&schema["then"]);
                    demands.conditional = Some(Box::new((Self::of(value), then)));
                }
                "then" => {}
                other => panic!("a schema of ours uses `{other}`, which is not implemented"),
            }
        }
        for (name, field) in &mut demands.fields {
            field.is_required = demands.required.contains(name);
        }
        demands
    }

    /// Returns every breach of the schema in the document, or the first thousand.
    pub(super) fn breaches(&self, document: &Value) -> Vec<Breach> {
        let mut judging = Judging {
            path: Vec::new(),
            breaches: Vec::new(),
            enough: ENOUGH,
        };
        judging.value(self, document);
        judging.breaches
    }

    /// True if the value fits, whatever else is wrong with the document.
    fn admits(&self, value: &Value) -> bool {
        let mut judging = Judging {
            path: Vec::new(),
            breaches: Vec::new(),
            enough: 1,
        };
        judging.value(self, value);
        judging.breaches.is_empty()
    }

    fn field(&self, name: &str) -> Option<&Self> {
        let mut fields = self.fields.iter();
        fields.find_map(|(known, demands)| (known == name).then_some(demands))
    }
}

/// The judgement of one document.
struct Judging<'v> {
    /// The path to the current value.
    path: Vec<Step<&'v str>>,
    breaches: Vec<Breach>,
    enough: usize,
}

impl<'v> Judging<'v> {
    fn value(&mut self, demands: &Demands, value: &'v Value) {
        if !demands.kinds.is_empty() && !demands.kinds.iter().any(|kind| kind.is_of(value)) {
            self.broken("type");
        }
        if let Some(words) = &demands.words
            && !value
                .as_str()
                .is_some_and(|text| words.iter().any(|word| word == text))
        {
            self.broken("enum");
        }
        if let Some(constant) = &demands.constant
            && value.as_str() != Some(constant)
        {
            self.broken("const");
        }
        if let Some(never) = &demands.never
            && never.admits(value)
        {
            self.broken("not");
        }
        match value {
            Value::String(text) => self.text(demands, text),
            Value::Number(number) => self.number(demands, number),
            Value::Array(items) => self.items(demands, items),
            Value::Object(fields) => self.fields(demands, fields),
            Value::Null | Value::Bool(_) => {}
        }
        if let Some(conditional) = &demands.conditional {
            let (condition, then) = conditional.as_ref();
            if condition.admits(value) {
                self.value(then, value);
            }
        }
    }

    fn text(&mut self, demands: &Demands, text: &str) {
        let length = || text.chars().count() as u64;
        if demands.length_min.is_some_and(|min| length() < min) {
            self.broken("minLength");
        }
        let is_too_long = demands.length_max.is_some_and(|max| length() > max);
        if is_too_long {
            self.broken("maxLength");
        }
        if let Some(pattern) = &demands.pattern
            && !pattern.is_match(text)
        {
            self.broken("pattern");
        }
        if demands.format.is_some_and(|is_right| !is_right(text)) {
            self.broken("format");
        }
    }

    fn number(&mut self, demands: &Demands, number: &Number) {
        if demands.minimum.is_some_and(|min| is_below(number, min)) {
            self.broken("minimum");
        }
        if demands.maximum.is_some_and(|max| is_above(number, max)) {
            self.broken("maximum");
        }
    }

    fn items(&mut self, demands: &Demands, items: &'v [Value]) {
        let length = items.len() as u64;
        if demands.items_min.is_some_and(|min| length < min) {
            self.broken("minItems");
        }
        if demands.items_max.is_some_and(|max| length > max) {
            self.broken("maxItems");
        }
        let Some(of_each) = &demands.items else {
            return;
        };
        for (index, item) in items.iter().enumerate() {
            if self.breaches.len() >= self.enough {
                return;
            }
            self.below(Step::Index(index), of_each, item);
        }
    }

    fn fields(&mut self, demands: &Demands, fields: &'v Map<String, Value>) {
        let mut required = 0;
        for (name, value) in fields {
            if self.breaches.len() >= self.enough {
                return;
            }
            if let Some(of_field) = demands.field(name) {
                required += usize::from(of_field.is_required);
                self.below(Step::Key(name), of_field, value);
            } else if demands.is_closed {
                self.breaches.push(Breach::Unknown {
                    at: Step::path(&self.path),
                    field: name.clone(),
                });
            }
        }
        // Nothing is missing from nearly every mapping, and counting is cheaper than looking up each name.
        if required < demands.required.len() {
            self.missing(&demands.required, fields);
        }
    }

    fn missing(&mut self, required: &[String], fields: &Map<String, Value>) {
        for field in required {
            if !fields.contains_key(field) {
                self.breaches.push(Breach::Missing {
                    at: Step::path(&self.path),
                    field: field.clone(),
                });
            }
        }
    }

    fn below(&mut self, step: Step<&'v str>, demands: &Demands, value: &'v Value) {
        self.path.push(step);
        self.value(demands, value);
        self.path.pop();
    }

    fn broken(&mut self, keyword: &'static str) {
        self.breaches.push(Breach::Broken {
            at: Step::path(&self.path),
            keyword,
        });
    }
}

impl Kind {
    fn is_of(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Object, Value::Object(_))
            | (Self::Array, Value::Array(_))
            | (Self::Text, Value::String(_))
            | (Self::Boolean, Value::Bool(_))
            | (Self::Number, Value::Number(_)) => true,
            // A number without a fraction is an integer, however it is written.
            (Self::Integer, Value::Number(number)) => {
                !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
            }
            _ => false,
        }
    }
}

/// Compares whole numbers: as a float, the largest bound would be one more than it is.
fn is_below(number: &Number, min: u64) -> bool {
    match (number.as_u64(), number.as_f64()) {
        (Some(whole), _) => whole < min,
        (None, Some(float)) => float < 0.0 || (float.floor() as u128) < u128::from(min),
        (None, None) => true,
    }
}

fn is_above(number: &Number, max: u64) -> bool {
    match (number.as_u64(), number.as_f64()) {
        (Some(whole), _) => whole > max,
        (None, Some(float)) => float.ceil() as u128 > u128::from(max),
        (None, None) => true,
    }
}

fn kinds(value: &Value) -> Vec<Kind> {
    let names = if value.is_array() {
        texts(value)
    } else {
        vec![text(value).to_owned()]
    };
    let kind = |name: &String| match name.as_str() {
        "object" => Kind::Object,
        "array" => Kind::Array,
        "string" => Kind::Text,
        "boolean" => Kind::Boolean,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        other => panic!("a schema of ours has the type `{other}`, which is not implemented"),
    };
    names.iter().map(kind).collect()
}

fn format(name: &str) -> fn(&str) -> bool {
    match name {
        "date-time" => |text| crate::envelope::Timestamp::parse(text).is_some(),
        "line-range" => |text| crate::packet::LineRange::parse(text).is_some(),
        other => panic!("a schema of ours has the format `{other}`, which is not implemented"),
    }
}

fn mapping(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("a schema of ours is a mapping")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text in a schema of ours")
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().expect("a list in a schema of ours");
    items.iter().map(|item| text(item).to_owned()).collect()
}

fn count(value: &Value) -> u64 {
    value.as_u64().expect("a bound is a whole number")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Schema;

    fn index(breach: &Breach) -> Option<usize> {
        let (Breach::Missing { at, .. } | Breach::Unknown { at, .. } | Breach::Broken { at, .. }) =
            breach;
        at.iter().find_map(|step| match step {
            Step::Index(index) => Some(*index),
            Step::Key(_) => None,
        })
    }

    #[test]
    fn a_breach_far_down_a_long_list_is_found_at_its_place() {
        let wrong = [0, 499, 500, 1_500, 1_501];
        let severity = |n: usize| if wrong.contains(&n) { "P9" } else { "P3" };
        let finding =
            |n| json!({"id": format!("F-{n}"), "severity": severity(n), "status": "open"});
        let packet = json!({"findings": (0..1_502).map(finding).collect::<Vec<_>>()});
        let found = Schema::FindingsPacket.breaches(&packet);
        assert_eq!(found.iter().filter_map(index).collect::<Vec<_>>(), wrong);
    }

    #[test]
    fn a_list_of_nothing_but_breaches_is_not_judged_to_its_end() {
        let document = json!({"findings": vec![json!({}); 40_000]});
        let found = Schema::FindingsPacket.breaches(&document).len();
        assert!((ENOUGH..ENOUGH + 10).contains(&found), "{found}");
    }

    #[test]
    #[should_panic(expected = "uses `uniqueItems`")]
    fn a_schema_with_a_keyword_nobody_checks_is_not_compiled() {
        Demands::of(&json!({"type": "array", "uniqueItems": true}));
    }

    #[test]
    fn a_keyword_admits_what_json_schema_says() {
        for (schema, admitted, refused) in [
            (
                json!({"type": "object"}),
                json!([{}, {"a": 1}]),
                json!([[], "a", null, 1, true]),
            ),
            (json!({"type": "array"}), json!([[], [1]]), json!([{}, "a"])),
            (
                json!({"type": ["string", "boolean"]}),
                json!(["", false]),
                json!([1, null, [], {}]),
            ),
            (
                json!({"type": "integer"}),
                json!([1, -1, 1.0, u64::MAX]),
                json!([1.5, "1", true]),
            ),
            (json!({"type": "number"}), json!([1, 1.5]), json!(["1"])),
            (
                json!({"enum": ["a", "b"]}),
                json!(["a", "b"]),
                json!(["c", 1, null]),
            ),
            (json!({"const": "a"}), json!(["a"]), json!(["b", 1])),
            (
                json!({"not": {"const": "a"}}),
                json!(["b", 1]),
                json!(["a"]),
            ),
            (
                json!({"minLength": 2, "maxLength": 3}),
                json!(["ää", "äää", 1]),
                json!(["", "ä", "ääää"]),
            ),
            (
                json!({"pattern": "^a+$"}),
                json!(["a", "aa", 1]),
                json!(["", "ab", "b"]),
            ),
            (
                json!({"format": "date-time"}),
                json!(["2026-02-13T10:00:00Z", 1]),
                json!(["2026-02-13"]),
            ),
            (
                json!({"minimum": 3, "maximum": 5}),
                json!([3, 5, 3.0, 4.5, 5.0, "9"]),
                json!([2, 6, 2.9, 5.1, -4]),
            ),
            (json!({"minimum": 0}), json!([0, 0.0]), json!([-1, -0.5])),
            (
                json!({"minItems": 1, "maxItems": 2}),
                json!([[1], [1, 2], "abc"]),
                json!([[], [1, 2, 3]]),
            ),
            (
                json!({"items": {"const": "a"}}),
                json!([[], ["a", "a"], "b"]),
                json!([["a", "b"]]),
            ),
            (
                json!({"properties": {"a": {"const": "b"}}, "required": ["a"], "additionalProperties": false}),
                json!([{"a": "b"}, 1]),
                json!([{}, {"a": "c"}, {"a": "b", "d": 1}]),
            ),
            (
                json!({"properties": {"a": {"const": "b"}}, "additionalProperties": {"type": "string"}}),
                json!([{}, {"c": "d"}]),
                json!([{"a": "c"}]),
            ),
            (
                json!({"if": {"const": "a"}, "then": {"maxLength": 0}}),
                json!(["b", ""]),
                json!(["a"]),
            ),
        ] {
            let demands = Demands::of(&schema);
            for (values, is_admitted) in [(admitted, true), (refused, false)] {
                for value in values.as_array().expect("values") {
                    assert_eq!(demands.admits(value), is_admitted, "{schema} of {value}");
                }
            }
        }
    }

    #[test]
    fn bounds_are_exact_beyond_the_whole_numbers_of_a_float() {
        let at_most = Demands::of(&json!({"minimum": 0, "maximum": u64::MAX}));
        let two_to_the_64 = 18_446_744_073_709_551_616.0;
        for (number, is_admitted) in [
            (json!(u64::MAX), true),
            (json!(two_to_the_64), false),
            (json!(1e300), false),
            (json!(0), true),
            (json!(-1), false),
            (json!(-0.5), false),
            (json!(0.5), true),
        ] {
            assert_eq!(at_most.admits(&number), is_admitted, "{number}");
        }
    }
}
