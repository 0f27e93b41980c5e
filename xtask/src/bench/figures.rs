//! What every measurement yields: figures or the reason there are none, and their quantiles.

pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Returns a quantile of the values, which it sorts: 0.5 is the median.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index"
    )]
    let index = (last as f64 * share).round() as usize;
    values[index]
}
