//! Waiting for something to happen in a workspace's directories: by events where there are any, and by a look now and
//! then, which makes it certain.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecursiveMode, Watcher as _};

/// How often it is looked without an event: events can be lost, and some file systems have none.
const LOOK: Duration = Duration::from_secs(1);

/// Looks until `look` finds something or the time is up. It is looked at once, after each event in one of the
/// directories, and once a second; a failed look ends the wait.
pub(crate) fn until<T, E>(
    directories: &[PathBuf],
    patience: Duration,
    mut look: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let start = Instant::now();
    let (send, events) = channel();
    // Without events, for want of watches or of a directory, the looks do all the work.
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.map_or(true, |event| is_news(&event.kind)) {
            // Whoever waited may be gone already.
            let _ = send.send(());
        }
    });
    if let Ok(watcher) = &mut watcher {
        for directory in directories {
            let _ = watcher.watch(directory, RecursiveMode::NonRecursive);
        }
    }
    loop {
        // The watch stands before the look, so nothing comes unseen between the two.
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
        let Some(left) = patience.checked_sub(start.elapsed()) else { return Ok(None) };
        match events.recv_timeout(left.min(LOOK)) {
            // What comes in a burst is looked at once.
            Ok(()) => while events.try_recv().is_ok() {},
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(left.min(LOOK)),
        }
    }
}

/// Whether a file came, went or was finished. That one was opened is our own doing as often as not, and to look because of
/// it would never end.
fn is_news(kind: &EventKind) -> bool {
    match kind {
        EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) => true,
        EventKind::Access(kind) => *kind == AccessKind::Close(AccessMode::Write),
        EventKind::Any | EventKind::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn a_file_that_comes_is_seen_by_its_event_and_not_by_a_look_a_second_later() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, file) = (directory.path().to_owned(), directory.path().join("a.yaml"));
        let mut looks = 0;
        let found = until(&[path], Duration::from_secs(60), || {
            looks += 1;
            if looks == 1 {
                let (temporary, file) = (file.with_extension("tmp"), file.clone());
                std::thread::spawn(move || {
                    std::fs::write(&temporary, "x").and_then(|()| std::fs::rename(&temporary, &file))
                });
            }
            Ok::<_, Infallible>(file.exists().then_some(()))
        });
        assert_eq!(found, Ok(Some(())));
    }

    #[test]
    fn looking_is_no_news_and_the_time_ends_the_wait() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().to_owned();
        let mut looks = 0;
        let found = until(std::slice::from_ref(&path), Duration::from_millis(300), || {
            looks += 1;
            Ok::<Option<()>, Infallible>(std::fs::read_dir(&path).map(|_| None).unwrap_or_default())
        });
        assert_eq!(found, Ok(None));
        assert!(looks < 10, "{looks} looks within 0.3 s: each look wakes the next");
    }
}
