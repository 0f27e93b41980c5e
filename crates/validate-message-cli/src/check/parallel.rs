//! Works on items in several threads and passes the results on in the items' order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// The number of items that a thread takes at once: enough that threads rarely meet, few enough that waiting results
/// stay small.
const PORTION: usize = 32;

/// Works on every item and passes the results on in the items' order, each as soon as all earlier ones are done. A slow
/// consumer soon stops the threads.
pub(crate) fn in_order<I: Sync, R: Send>(
    items: &[I],
    work: impl Fn(&I) -> R + Sync,
    mut each: impl FnMut(R),
) {
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(items.len() / PORTION);
    if threads < 2 {
        return items.iter().map(work).for_each(each);
    }
    let taken = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::sync_channel(2 * threads);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, taken, work) = (sender.clone(), &taken, &work);
            scope.spawn(move || {
                loop {
                    let number = taken.fetch_add(1, Ordering::Relaxed);
                    let Some(portion) = items.chunks(PORTION).nth(number) else {
                        return;
                    };
                    let done: Vec<R> = portion.iter().map(work).collect();
                    if sender.send((number, done)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut due = 0;
        for (number, done) in receiver {
            early.insert(number, done);
            while let Some(done) = early.remove(&due) {
                done.into_iter().for_each(&mut each);
                due += 1;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_done_first_the_order_is_the_items() {
        let items: Vec<usize> = (0..1000).collect();
        let mut got = Vec::new();
        // The first portion takes longest.
        let turns = |item: usize| if item == 0 { 5_000_000 } else { 1 };
        let work = |item: &usize| (0..turns(*item)).fold(*item, |sum, _| std::hint::black_box(sum));
        in_order(&items, work, |result| got.push(result));
        assert_eq!(got, items);
        in_order(
            &[] as &[usize],
            |item| *item,
            |_| panic!("nothing was given"),
        );
    }
}
