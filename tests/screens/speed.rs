//! The time for a frame, and for the model after an event, with a thousand reviews.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use rustix::time::{ClockId, clock_gettime};
use settled_watch::draw::draw;

use super::stage::{Stage, read, spell};
use super::states::thousand;

/// The processor time of this thread, independent of other work on the machine.
fn used() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(now).expect("no processor runs backwards")
}

/// The fastest of several runs, since neighbours evict the caches.
fn fastest(mut act: impl FnMut()) -> Duration {
    let times = (0..15).map(|_| {
        let begun = used();
        act();
        used().saturating_sub(begun)
    });
    times.min().expect("fifteen")
}

#[test]
fn a_frame_with_a_thousand_reviews_takes_at_most_sixteen_milliseconds() {
    let mut stage = thousand(Stage::new());
    let mut app = stage.app();
    let mut terminal = Terminal::new(TestBackend::new(200, 60)).expect("a screen of memory");
    let frame = fastest(|| {
        terminal
            .draw(|frame| draw(frame, &mut app))
            .expect("memory takes it");
    });
    let mut follower = stage.follower();
    stage.request(1_001);
    let begun = used();
    assert!(follower.refresh().expect("a ledger"));
    let refresh = used().saturating_sub(begun);
    let now = stage.now();
    let model = fastest(|| app.show(follower.overview(now, &spell), now));
    let detail = fastest(|| read(&mut app, &follower, now));
    println!("frame {frame:?}, refresh {refresh:?}, model {model:?}, one review {detail:?}");
    // An unoptimised build takes many times as long, and other rooms' tests run beside this one.
    let slower = if cfg!(debug_assertions) { 8 } else { 1 };
    assert!(frame <= Duration::from_millis(16) * slower, "{frame:?}");
    assert!(model <= Duration::from_millis(50) * slower, "{model:?}");
}
