//! Did you mean: the known word nearest to a wrong one. Which words are known is the caller's.

/// The longest word that is compared with others, in bytes.
const LENGTH_MAX: usize = 64;

/// The candidate that differs from the word by case, or by a typing slip or two; longer words
/// may differ more. Words like `P1` are all one slip apart: there only the case may differ.
pub fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // A word this long is no slip of a field's name, and comparing it would cost its square.
    if word.len() > LENGTH_MAX {
        return None;
    }
    let lower = word.to_lowercase();
    let letters = lower.chars().count();
    let slips_max = if letters < 4 { 0 } else { 1 + letters / 4 };
    candidates
        .filter(|candidate| candidate.len() <= LENGTH_MAX)
        .map(|candidate| (strsim::osa_distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= slips_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known = ["review_lgtm", "subject", "P1", "P2"];
        let near = |word| nearest(word, known.into_iter());
        assert_eq!(near("review_lgmt"), Some("review_lgtm"));
        assert_eq!(near("subjct"), Some("subject"));
        assert_eq!(near("p2"), Some("P2"));
        assert_eq!(near("p5"), None);
        assert_eq!(near("colour"), None);
        assert_eq!(near(&"subject".repeat(10)), None);
        // Not even as long as both are: the answer is found without a look at them.
        let long = "subject".repeat(10);
        assert_eq!(nearest(&long, [long.as_str()].into_iter()), None);
        assert_eq!(nearest("subject", [long.as_str(), "subjct"].into_iter()), Some("subjct"));
    }
}
