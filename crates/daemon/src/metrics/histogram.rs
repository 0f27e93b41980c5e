//! Counts durations in the buckets of a Prometheus histogram.

/// Durations, in seconds: from half a millisecond, which a sync on a good disk takes, to a minute.
pub(super) const SECONDS: [f64; 13] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0,
];

/// Rounds of a review; only a reopened review has more than three.
pub(super) const ROUNDS: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 6.0, 10.0];

/// Counts values by upper bounds.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    /// A count for each bound, not cumulative, and one for values above all bounds.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// An empty histogram; the bounds must rise.
    pub(super) fn of(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0.0,
        }
    }

    /// Counts one value.
    pub(super) fn add(&mut self, value: f64) {
        self.add_times(value, 1);
    }

    /// Counts a value `times` times.
    pub(super) fn add_times(&mut self, value: f64, times: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket] += times;
        self.sum += value * times as f64;
    }

    /// The cumulative count up to each bound.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        self.bounds
            .iter()
            .zip(&self.counts)
            .scan(0, |sum, (bound, count)| {
                *sum += count;
                Some((*bound, *sum))
            })
    }

    /// The number of values.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all values.
    pub(super) fn sum(&self) -> f64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_is_below_it_and_the_largest_is_in_no_bucket() {
        let mut histogram = Histogram::of(&ROUNDS);
        [1.0, 2.0, 2.0, 99.0]
            .into_iter()
            .for_each(|round| histogram.add(round));
        let buckets: Vec<_> = histogram.buckets().collect();
        assert_eq!(buckets[..3], [(1.0, 1), (2.0, 3), (3.0, 3)]);
        assert_eq!(
            (buckets[5].1, histogram.count(), histogram.sum()),
            (3, 4, 104.0)
        );
    }
}
