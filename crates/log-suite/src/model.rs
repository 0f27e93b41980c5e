//! A log in memory. Each append meets the weather, by a seed: it may be lost, come late, come twice, or go unanswered.
//! On demand the log also breaks its promises: it forgets acknowledged batches, or shows two hosts two histories.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spool::Digest;
use spool::log::{Appended, Head, Heartbeat, Log, LogError, OnChange, Signed};

use crate::{Bench, Dice};

/// The largest batch, in bytes.
const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// The share of calls that meet each trouble, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// The append never reaches the log.
    pub request_lost: u8,
    /// The append reaches the log after later calls.
    pub request_late: u8,
    /// The append is executed and its answer is lost.
    pub answer_lost: u8,
    /// The append reaches the log again after later calls.
    pub request_twice: u8,
    /// The log cannot be reached.
    pub unreachable: u8,
    /// A follower sees less than has arrived.
    pub follows_late: u8,
    /// The log gives its batches to every host and takes none.
    pub is_read_only: bool,
}

impl Weather {
    /// About every second call meets some trouble.
    pub const STORM: Weather = Weather {
        request_lost: 10,
        request_late: 10,
        answer_lost: 10,
        request_twice: 10,
        unreachable: 10,
        follows_late: 30,
        is_read_only: false,
    };
}

struct ModelState {
    batches: Vec<Signed>,
    /// The history that every second handle sees, once the log is split.
    split: Option<Vec<Signed>>,
    /// The batches that reach the log later.
    late: Vec<Signed>,
    listeners: Vec<OnChange>,
    /// Heartbeats, each with the number of its sender. A new listener has missed the earlier ones.
    heartbeats: Vec<(usize, Vec<u8>)>,
    dice: Dice,
    weather: Weather,
    is_cut: bool,
    hosts: usize,
    /// The lead of its clock over that of the handle with this number.
    clocks: BTreeMap<usize, i64>,
}

/// The log that all handles of a model share.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<ModelState>>);

/// One host's handle.
pub struct ModelLog {
    shared: Shared,
    number: usize,
    /// The number of heartbeats it has heard or missed.
    heard: usize,
}

impl Shared {
    /// Makes an empty log whose random numbers follow from `seed`.
    pub fn new(seed: u64, weather: Weather) -> Shared {
        Shared(Arc::new(Mutex::new(ModelState {
            batches: Vec::new(),
            split: None,
            late: Vec::new(),
            listeners: Vec::new(),
            heartbeats: Vec::new(),
            dice: Dice::new(seed),
            weather,
            is_cut: false,
            hosts: 0,
            clocks: BTreeMap::new(),
        })))
    }

    /// Returns a handle for another host.
    pub fn connect(&self) -> ModelLog {
        let mut state = self.state();
        state.hosts += 1;
        ModelLog {
            number: state.hosts,
            heard: state.heartbeats.len(),
            shared: self.clone(),
        }
    }

    /// Changes the simulated faults, for example to let every host catch up.
    pub fn set_weather(&self, weather: Weather) {
        self.state().weather = weather;
    }

    /// Gives the log a clock, and sets its lead over that of the handle's host, in milliseconds.
    pub fn set_clock_ahead(&self, number: usize, ms: i64) {
        self.state().clocks.insert(number, ms);
    }

    /// Returns the batches, in order.
    pub fn batches(&self) -> Vec<Signed> {
        self.state().batches.clone()
    }

    /// Forgets the last batches, although they were acknowledged.
    pub fn lose_tail(&self, batches: usize) {
        let mut state = self.state();
        let left = state.batches.len().saturating_sub(batches);
        state.batches.truncate(left);
        // Appends on their way would bring them back.
        state.late.clear();
    }

    /// From here on, shows every second handle a history of its own. A host that reconnects may get the other side.
    pub fn split(&self) {
        let mut state = self.state();
        state.split = Some(state.batches.clone());
    }

    /// Returns the batches that the handle of this number sees.
    pub fn shown_to(&self, number: usize) -> Vec<Signed> {
        self.state().history(number).clone()
    }

    fn state(&self) -> MutexGuard<'_, ModelState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelState {
    fn history(&mut self, number: usize) -> &mut Vec<Signed> {
        match &mut self.split {
            Some(other) if number.is_multiple_of(2) => other,
            Some(_) | None => &mut self.batches,
        }
    }

    fn unreachable(&mut self) -> Result<(), LogError> {
        let chance = self.weather.unreachable;
        if self.is_cut || self.dice.percent(chance) {
            let why = "no route".to_owned();
            return Err(LogError::Unreachable { why });
        }
        Ok(())
    }

    /// Lets late appends arrive, now or after the next call.
    fn deliver_late(&mut self, number: usize) {
        for signed in std::mem::take(&mut self.late) {
            if self.dice.percent(50) {
                self.put(number, &signed);
            } else {
                self.late.push(signed);
            }
        }
    }

    /// Appends a batch if it follows the end.
    fn put(&mut self, number: usize, signed: &Signed) -> Appended {
        let history = self.history(number);
        let end = end(history);
        if signed.batch.after() == end {
            history.push(signed.clone());
            for wake in &self.listeners {
                wake();
            }
            return Appended::Committed;
        }
        let is_there = history.iter().any(|known| {
            known.batch.after() == signed.batch.after() && known.batch.head() == signed.batch.head()
        });
        if is_there {
            Appended::Committed
        } else {
            Appended::Moved(end)
        }
    }
}

fn end(history: &[Signed]) -> Head {
    history
        .last()
        .map_or(Head::EMPTY, |signed| signed.batch.head())
}

impl ModelLog {
    /// Returns its number: the first handle has 1.
    pub fn number(&self) -> usize {
        self.number
    }
}

impl Log for ModelLog {
    fn head(&mut self) -> Result<Head, LogError> {
        let mut state = self.shared.state();
        state.unreachable()?;
        state.deliver_late(self.number);
        Ok(end(state.history(self.number)))
    }

    fn append(&mut self, signed: &Signed) -> Result<Appended, LogError> {
        let bytes = signed.batch.bytes().len();
        if bytes > BATCH_BYTES_MAX {
            let bytes_max = BATCH_BYTES_MAX;
            return Err(LogError::TooLarge { bytes, bytes_max });
        }
        let mut state = self.shared.state();
        state.unreachable()?;
        if state.weather.is_read_only {
            let why = "you may only read".to_owned();
            return Err(LogError::Denied { why });
        }
        state.deliver_late(self.number);
        let Weather {
            request_lost,
            request_late,
            answer_lost,
            request_twice,
            ..
        } = state.weather;
        let unknown = Ok(Appended::Unknown("no answer in time".to_owned()));
        if state.dice.percent(request_lost) {
            return unknown;
        }
        if state.dice.percent(request_late) {
            state.late.push(signed.clone());
            return unknown;
        }
        let appended = state.put(self.number, signed);
        if state.dice.percent(request_twice) {
            state.late.push(signed.clone());
        }
        if state.dice.percent(answer_lost) {
            return unknown;
        }
        Ok(appended)
    }

    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
        let mut state = self.shared.state();
        state.unreachable()?;
        state.deliver_late(self.number);
        let history = state.history(self.number);
        let mut given = behind(history, from)?;
        let chance = state.weather.follows_late;
        if state.dice.percent(chance) {
            let seen = state.dice.below(given.len() + 1);
            given.truncate(seen);
        }
        Ok(given)
    }

    fn on_change(&mut self, on_change: OnChange) {
        self.shared.state().listeners.push(on_change);
    }

    fn poll_ms(&self) -> u64 {
        1_000
    }

    fn clock_ahead_ms(&self) -> Option<i64> {
        self.shared.state().clocks.get(&self.number).copied()
    }

    fn send_heartbeat(&mut self, bytes: Vec<u8>) {
        let mut state = self.shared.state();
        if state.unreachable().is_ok() {
            state.heartbeats.push((self.number, bytes));
        }
    }

    fn heartbeats(&mut self) -> Vec<Heartbeat> {
        let state = self.shared.state();
        let new = state.heartbeats[self.heard..].iter();
        let others = new.filter(|(sender, _)| *sender != self.number);
        let given = others.map(|(_, bytes)| Heartbeat {
            bytes: bytes.clone(),
            waited_ms: 0,
        });
        let given = given.collect();
        self.heard = state.heartbeats.len();
        given
    }
}

/// Returns the batches of a history that extend beyond `from`, which must be in it.
fn behind(history: &[Signed], from: Head) -> Result<Vec<Signed>, LogError> {
    let log = end(history);
    if from.seq > log.seq {
        return Err(LogError::RolledBack { log, ours: from });
    }
    let mut head = Head::EMPTY;
    for signed in history {
        let after = signed.batch.after();
        if after != head {
            let what = format!("record {} follows record {}", after.seq + 1, head.seq);
            return Err(LogError::Broken { what });
        }
        head = signed.batch.head();
    }
    let mut places = history
        .iter()
        .filter_map(|signed| signed.batch.head_at(from.seq));
    let there = places.next().unwrap_or(Head::EMPTY);
    if there != from {
        let (at, ours, theirs): (u64, Digest, Digest) = (from.seq, from.digest, there.digest);
        return Err(LogError::Forked { at, ours, theirs });
    }
    let beyond = history
        .iter()
        .filter(|signed| signed.batch.head().seq > from.seq);
    Ok(beyond.cloned().collect())
}

/// A bench on the model in fair weather.
pub struct ModelBench(pub Shared);

impl Default for ModelBench {
    fn default() -> ModelBench {
        ModelBench(Shared::new(0, Weather::default()))
    }
}

impl Bench for ModelBench {
    fn connect(&mut self) -> Box<dyn Log> {
        Box::new(self.0.connect())
    }

    fn restart(&mut self) {
        // Unacknowledged appends may be lost; memory holds nothing else to lose.
        self.0.state().late.clear();
    }

    fn cut_off(&mut self) {
        self.0.state().is_cut = true;
    }

    fn join(&mut self) {
        self.0.state().is_cut = false;
    }

    fn batch_bytes_max(&self) -> usize {
        BATCH_BYTES_MAX
    }

    fn lose_tail(&mut self, batches: usize) {
        self.0.lose_tail(batches);
    }

    fn lose_one(&mut self, batch: usize) {
        self.0.state().batches.remove(batch);
    }

    fn replace_last(&mut self, with: &Signed) {
        let mut state = self.0.state();
        state.batches.pop();
        state.batches.push(with.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::fixture::batch;

    /// Enough calls for every late append to arrive.
    const CALLS: usize = 64;

    fn of(signed: &[Signed]) -> Vec<Head> {
        signed.iter().map(|signed| signed.batch.head()).collect()
    }

    fn first() -> Signed {
        batch(Head::EMPTY, &["one"], "tower")
    }

    fn is_unknown(told: &Result<Appended, LogError>) -> bool {
        matches!(told, Ok(Appended::Unknown(_)))
    }

    /// Appends in this weather; returns the log, the handle and the answer.
    fn appended(weather: Weather) -> (ModelBench, ModelLog, Result<Appended, LogError>) {
        let bench = ModelBench(Shared::new(7, weather));
        let mut log = bench.0.connect();
        let told = log.append(&first());
        bench.0.set_weather(Weather::default());
        (bench, log, told)
    }

    fn let_it_arrive(log: &mut ModelLog) {
        for _ in 0..CALLS {
            log.head().expect("fair weather");
        }
    }

    #[test]
    fn a_request_is_lost_or_comes_later() {
        let (bench, mut log, told) = appended(Weather {
            request_lost: 100,
            ..Weather::default()
        });
        assert!(is_unknown(&told), "{told:?}");
        let_it_arrive(&mut log);
        assert_eq!(of(&bench.0.batches()), []);

        let late = Weather {
            request_late: 100,
            ..Weather::default()
        };
        let (bench, mut log, told) = appended(late);
        assert!(is_unknown(&told), "{told:?}");
        assert_eq!(of(&bench.0.batches()), []);
        let_it_arrive(&mut log);
        assert_eq!(of(&bench.0.batches()), [first().batch.head()]);
    }

    #[test]
    fn what_is_late_is_gone_after_a_restart_or_a_loss() {
        let late = Weather {
            request_late: 100,
            ..Weather::default()
        };
        let lose_nothing_more = |bench: &mut ModelBench| bench.0.lose_tail(0);
        for lose in [
            ModelBench::restart as fn(&mut ModelBench),
            lose_nothing_more,
        ] {
            let (mut bench, mut log, _) = appended(late);
            lose(&mut bench);
            let_it_arrive(&mut log);
            assert_eq!(of(&bench.0.batches()), []);
        }
    }

    #[test]
    fn an_answer_is_lost_and_the_batch_is_there() {
        let (bench, _, told) = appended(Weather {
            answer_lost: 100,
            ..Weather::default()
        });
        assert!(is_unknown(&told), "{told:?}");
        assert_eq!(of(&bench.0.batches()), [first().batch.head()]);
    }

    #[test]
    fn a_request_comes_twice_and_is_there_once() {
        let twice = Weather {
            request_twice: 100,
            ..Weather::default()
        };
        let (bench, mut log, told) = appended(twice);
        assert_eq!(told, Ok(Appended::Committed));
        let_it_arrive(&mut log);
        assert_eq!(of(&bench.0.batches()), [first().batch.head()]);
        // The second one shows once the first is gone.
        let (mut bench, mut log, _) = appended(twice);
        bench.lose_one(0);
        assert_eq!(of(&bench.0.batches()), []);
        let_it_arrive(&mut log);
        assert_eq!(of(&bench.0.batches()), [first().batch.head()]);
    }

    #[test]
    fn a_log_out_of_reach_answers_nothing() {
        let unreachable = Weather {
            unreachable: 100,
            ..Weather::default()
        };
        let away = ModelBench(Shared::new(7, unreachable));
        let mut cut_off = ModelBench::default();
        cut_off.cut_off();
        for bench in [away, cut_off] {
            let mut log = bench.0.connect();
            let told = [
                log.head().err(),
                log.append(&first()).err(),
                log.follow(Head::EMPTY).err(),
            ];
            for error in told {
                assert!(
                    matches!(error, Some(LogError::Unreachable { .. })),
                    "{error:?}"
                );
            }
            log.send_heartbeat(vec![1]);
            bench.0.set_weather(Weather::default());
            assert_eq!(of(&bench.0.batches()), []);
            assert!(bench.0.state().heartbeats.is_empty());
        }
    }

    #[test]
    fn a_follower_sees_a_beginning_of_what_is_there() {
        let shared = Shared::new(7, Weather::default());
        let mut log = shared.connect();
        let mut end = Head::EMPTY;
        for _ in 0..3 {
            let next = batch(end, &["next"], "tower");
            assert_eq!(log.append(&next), Ok(Appended::Committed));
            end = next.batch.head();
        }
        shared.set_weather(Weather {
            follows_late: 100,
            ..Weather::default()
        });
        let all = of(&shared.batches());
        let mut seen = [0; 4];
        for _ in 0..400 {
            let given = of(&log.follow(Head::EMPTY).expect("batches"));
            assert!(all.starts_with(&given), "{given:?}");
            seen[given.len()] += 1;
        }
        assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
    }

    #[test]
    fn a_split_log_shows_every_second_handle_a_history_of_its_own() {
        let shared = Shared::new(7, Weather::default());
        let (mut one, mut two) = (shared.connect(), shared.connect());
        assert_eq!((one.number(), two.number()), (1, 2));
        assert_eq!(one.append(&first()), Ok(Appended::Committed));
        shared.split();
        let end = first().batch.head();
        let (odd, even) = (batch(end, &["odd"], "tower"), batch(end, &["even"], "box"));
        assert_eq!(one.append(&odd), Ok(Appended::Committed));
        assert_eq!(two.append(&even), Ok(Appended::Committed));
        assert_eq!(of(&shared.shown_to(1)), [end, odd.batch.head()]);
        assert_eq!(of(&shared.shown_to(2)), [end, even.batch.head()]);
        assert_eq!(of(&shared.shown_to(3)), [end, odd.batch.head()]);
        let told = two.follow(odd.batch.head()).err();
        assert!(matches!(told, Some(LogError::Forked { at: 2, .. })));
    }

    #[test]
    fn each_handle_has_the_clock_that_was_set_for_it() {
        let shared = Shared::new(7, Weather::default());
        let (ours, theirs) = (shared.connect(), shared.connect());
        shared.set_clock_ahead(ours.number(), -250);
        assert_eq!(ours.clock_ahead_ms(), Some(-250));
        assert_eq!(theirs.clock_ahead_ms(), None);
    }

    #[test]
    fn a_log_rings_for_what_is_new_and_for_nothing_else() {
        let shared = Shared::new(7, Weather::default());
        let mut log = shared.connect();
        let changes = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&changes);
        log.on_change(Box::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        }));
        for _ in 0..2 {
            assert_eq!(log.append(&first()), Ok(Appended::Committed));
        }
        let late = batch(Head::EMPTY, &["late"], "laptop");
        assert_eq!(log.append(&late), Ok(Appended::Moved(first().batch.head())));
        assert_eq!(changes.load(Ordering::SeqCst), 1);
        assert_eq!(log.poll_ms(), 1_000);
    }

    #[test]
    fn a_heartbeat_is_heard_once_by_the_others_that_listen() {
        let shared = Shared::new(7, Weather::default());
        let (mut one, mut two) = (shared.connect(), shared.connect());
        let heard = |log: &mut ModelLog| -> Vec<(Vec<u8>, u64)> {
            let beats = log.heartbeats().into_iter();
            beats.map(|beat| (beat.bytes, beat.waited_ms)).collect()
        };
        one.send_heartbeat(vec![1]);
        two.send_heartbeat(vec![2]);
        let mut late = shared.connect();
        assert_eq!(heard(&mut one), [(vec![2], 0)]);
        assert_eq!(heard(&mut one), []);
        assert_eq!(heard(&mut two), [(vec![1], 0)]);
        assert_eq!(heard(&mut late), []);
        one.send_heartbeat(vec![3]);
        assert_eq!(heard(&mut late), [(vec![3], 0)]);
        assert_eq!(heard(&mut one), []);
    }
}
