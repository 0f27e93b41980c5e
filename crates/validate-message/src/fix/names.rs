//! Names of fields in another case or with hyphens for underscores: `created-at-utc`, `Subject`.

use super::words::folded;

/// Returns the known name that the writer meant, if there is one.
pub(super) fn fixed<'n>(name: &str, mut known: impl Iterator<Item = &'n str>) -> Option<String> {
    let folded_name = folded(name);
    known
        .find(|known| folded(known) == folded_name)
        .map(str::to_owned)
}
