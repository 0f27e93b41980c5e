//! Long lists, judged a portion at a time: a validator keeps every error until it is done, and a file has
//! room for a hundred thousand of them. What a list's items are is the schemas' business; in none of
//! ours does a list lie within a list's item, nor does an item depend on another one.

use serde_json::{Map, Value};

use super::validators;
use super::{Breach, Schema, Shape, Step};

/// So many items of one list are judged at once.
const PORTION: usize = 500;

/// With so many breaches a document is refused for more than is ever told.
const ENOUGH: usize = 1_000;

/// Every way in which the document breaks the schema, or the first thousand and a few.
pub(super) fn breaches(schema: Schema, document: &Value) -> Vec<Breach> {
    if !has_long_list(document, schema.shape()) {
        return validators::breaches(schema, document);
    }
    let mut rests = Vec::new();
    let head = headed(document, Some(schema.shape()), &mut Vec::new(), &mut rests);
    let mut breaches = validators::breaches(schema, &head);
    for rest in &rests {
        for (number, portion) in rest.items.chunks(PORTION).enumerate() {
            if breaches.len() >= ENOUGH {
                return breaches;
            }
            let alone = rest
                .path
                .iter()
                .rev()
                .fold(Value::Array(portion.to_vec()), |value, name| {
                    Value::Object(Map::from_iter([(name.clone(), value)]))
                });
            let first = (number + 1) * PORTION;
            let found = validators::breaches(schema, &alone).into_iter();
            breaches.extend(found.filter_map(|breach| rest.moved(breach, first)));
        }
    }
    breaches
}

/// Most documents have none, and are judged as they are.
fn has_long_list(value: &Value, shape: &Shape) -> bool {
    match value {
        Value::Array(items) => shape.items().is_some() && items.len() > PORTION,
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            shape
                .field(name)
                .is_some_and(|(shape, _)| has_long_list(value, shape))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// What of a long list comes after its first portion.
struct Rest<'v> {
    /// The names that lead to the list.
    path: Vec<String>,
    items: &'v [Value],
}

impl Rest<'_> {
    /// The breach at its place in the whole list; none if it is not about an item.
    fn moved(&self, mut breach: Breach, first: usize) -> Option<Breach> {
        let (Breach::Missing { at, .. } | Breach::Unknown { at, .. } | Breach::Broken { at, .. }) =
            &mut breach;
        let is_below = self
            .path
            .iter()
            .zip(at.iter())
            .all(|(name, step)| *step == Step::Key(name.clone()));
        match at.get_mut(self.path.len()) {
            Some(Step::Index(index)) if is_below => *index += first,
            Some(Step::Index(_) | Step::Key(_)) | None => return None,
        }
        Some(breach)
    }
}

/// The document with its long lists cut to one portion. Only what the schema knows is copied deeply:
/// nothing else is judged but by its name.
fn headed<'v>(
    value: &'v Value,
    shape: Option<&Shape>,
    path: &mut Vec<String>,
    rests: &mut Vec<Rest<'v>>,
) -> Value {
    match (value, shape) {
        (Value::Array(items), Some(shape)) if shape.items().is_some() && items.len() > PORTION => {
            let (head, items) = items.split_at(PORTION);
            rests.push(Rest {
                path: path.clone(),
                items,
            });
            Value::Array(head.to_vec())
        }
        (Value::Object(fields), Some(shape)) => {
            let copied = fields.iter().map(|(name, value)| {
                path.push(name.clone());
                let copy = headed(
                    value,
                    shape.field(name).map(|(shape, _)| shape),
                    path,
                    rests,
                );
                path.pop();
                (name.clone(), copy)
            });
            Value::Object(copied.collect())
        }
        (value, _) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn index(breach: &Breach) -> Option<usize> {
        let (Breach::Missing { at, .. } | Breach::Unknown { at, .. } | Breach::Broken { at, .. }) =
            breach;
        at.iter().find_map(|step| match step {
            Step::Index(index) => Some(*index),
            Step::Key(_) => None,
        })
    }

    fn packet(count: usize, wrong: &[usize]) -> Value {
        let severity = |n: &usize| if wrong.contains(n) { "P9" } else { "P3" };
        let finding =
            |n| json!({"id": format!("F-{n}"), "severity": severity(&n), "status": "open"});
        json!({"findings": (0..count).map(finding).collect::<Vec<_>>()})
    }

    #[test]
    fn a_breach_far_down_a_long_list_is_found_at_its_place() {
        let wrong = [0, PORTION - 1, PORTION, 3 * PORTION, 3 * PORTION + 1];
        let found = breaches(Schema::FindingsPacket, &packet(3 * PORTION + 2, &wrong));
        assert_eq!(found.iter().filter_map(index).collect::<Vec<_>>(), wrong);
        assert_eq!(
            found,
            validators::breaches(Schema::FindingsPacket, &packet(3 * PORTION + 2, &wrong))
        );
    }

    #[test]
    fn what_is_wrong_outside_of_a_long_list_is_found_once() {
        let mut document = packet(2 * PORTION, &[]);
        document["round"] = json!("x");
        document["qa_validation"] =
            json!({"commands_run": vec![json!({"command": "c", "result": "pass"}); 900]});
        document["qa_validation"]["commands_run"][800] = json!({"command": "c"});
        let found = breaches(Schema::FindingsPacket, &document);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found.iter().filter_map(index).collect::<Vec<_>>(), [800]);
    }

    #[test]
    fn a_list_of_nothing_but_breaches_is_not_judged_to_its_end() {
        let document = json!({"findings": vec![json!({}); 40_000]});
        let found = breaches(Schema::FindingsPacket, &document).len();
        assert!((ENOUGH..ENOUGH + 4 * PORTION).contains(&found), "{found}");
    }
}
