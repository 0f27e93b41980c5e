//! Names of fields in another case or with hyphens for underscores: `created-at-utc`, `Subject`.

use super::words::folded;

/// The name that was meant, of those that are wanted; `None` if that is not certain.
pub(super) fn mended<'n>(name: &str, mut wanted: impl Iterator<Item = &'n str>) -> Option<String> {
    let folded_name = folded(name);
    wanted.find(|wanted| folded(wanted) == folded_name).map(str::to_owned)
}
