//! Names of fields in another case or with hyphens for underscores: `created-at-utc`, `Subject`.

use super::words::folded;

/// The name that was meant, of those that are known; `None` if it is none of them.
pub(super) fn mended<'n>(name: &str, mut known: impl Iterator<Item = &'n str>) -> Option<String> {
    let folded_name = folded(name);
    known
        .find(|known| folded(known) == folded_name)
        .map(str::to_owned)
}
