//! Sorting where small code matters more than speed.
//!
//! The sorts of the standard library are compiled for every type that is sorted, eight
//! to twelve kilobytes each time. Lists that are sorted once for each report or file need not
//! be that fast: here, positions are sorted, by code that is compiled once, and the
//! elements are moved to their places.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// Sorts by a key. Elements with equal keys keep their order.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts as `compare` says. Equal elements keep their order.
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let places = places(items.len(), &|a, b| match (items.get(a), items.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    put(places, &mut |a, b| items.swap(a, b));
}

/// The place of each of so many elements, once they are sorted.
fn places(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|&a, &b| compare(a, b));
    let mut places = alloc::vec![0; len];
    for (place, from) in order.into_iter().enumerate() {
        if let Some(to) = places.get_mut(from) {
            *to = place;
        }
    }
    places
}

/// Swaps elements until each is in its place.
fn put(mut places: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for at in 0..places.len() {
        while let Some(&place) = places.get(at)
            && place != at
        {
            swap(at, place);
            places.swap(at, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_testkit::Random;

    /// As the standard library sorts, for lists of all lengths with many equal keys.
    #[test]
    fn as_stable_sorts_do() {
        let mut random = Random::new(1);
        for len in 0..200 {
            let mut list: Vec<_> = (0..len).map(|number| (random.below(16), number)).collect();
            let mut expected = list.clone();
            expected.sort_by_key(|(key, _)| *key);
            sort_by_key(&mut list, |(key, _)| *key);
            assert_eq!(list, expected);
            expected.sort_by_key(|(key, _)| core::cmp::Reverse(*key));
            sort_by(&mut list, |a, b| b.0.cmp(&a.0));
            assert_eq!(list, expected);
        }
    }
}
