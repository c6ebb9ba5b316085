//! "Did you mean": the known name that a mistyped one is nearest to.

/// The candidate within two edits (fewer for short names), if any.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = match name.len() {
        0..3 => return None,
        3..5 => 1,
        _ => 2,
    };
    candidates
        .into_iter()
        .map(|candidate| (distance(name.as_bytes(), candidate.as_bytes()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance, a swap of neighbours counting once.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substitution = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substitution.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_name() {
        let known = ["acks", "linger", "batch_size", "buffer_size", "bootstrap_servers"];
        assert_eq!(nearest("ack", known), Some("acks"));
        assert_eq!(nearest("lniger", known), Some("linger"));
        assert_eq!(nearest("batchsize", known), Some("batch_size"));
        assert_eq!(nearest("bootstrap_server", known), Some("bootstrap_servers"));
        assert_eq!(nearest("ssl", known), None);
        assert_eq!(nearest("", known), None);
    }
}
