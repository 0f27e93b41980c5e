//! Gives memory that the process has freed back to the system.

/// The most free bytes that an arena of glibc keeps at its end, and the least of an allocation that gets pages of its own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_MAX: libc::c_int = 262_144;

/// The most arenas: enough for the threads that read a long ledger at the start.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS_MAX: libc::c_int = 3;

/// Lets a process that runs for long, and allocates much at its start, keep little of what it has freed. Call it before
/// the threads that allocate most: arenas that exist stay.
///
/// By default glibc has eight arenas for each core, and each keeps as much at its end as twice the largest block that was
/// ever freed: [`give_back_memory`] shortens the first arena alone.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "neither rustix nor nix wraps mallopt")]
pub fn keep_little_memory() {
    let limits = [
        (libc::M_ARENA_MAX, ARENAS_MAX),
        (libc::M_TRIM_THRESHOLD, KEPT_MAX),
        (libc::M_MMAP_THRESHOLD, KEPT_MAX),
    ];
    for (limit, value) in limits {
        // SAFETY: the call takes two numbers and changes only the settings of the allocator, under its lock.
        let _is_known = unsafe { libc::mallopt(limit, value) };
    }
}

/// Only glibc has these limits.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_little_memory() {}

/// Returns every free page inside the heap to the system, in all of glibc's arenas, and those at the end of the first. It
/// takes a few milliseconds for tens of MiB, in which no thread can allocate.
///
/// glibc itself only shortens the end of an arena, so one small value that lives keeps all that was freed below it: a
/// process would hold what its busiest moment needed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "neither rustix nor nix wraps malloc_trim")]
pub fn give_back_memory() {
    // SAFETY: the call touches only memory that is not allocated, and glibc takes the locks of its arenas for it.
    let _had_any = unsafe { libc::malloc_trim(0) };
}

/// Only glibc has the call; other C libraries give memory back in their own way.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_memory() {}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    /// The bytes of memory that this process has from the system for its data.
    fn resident() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
        let pages = statm
            .split(' ')
            .nth(1)
            .expect("the second is the resident memory");
        pages.parse::<usize>().expect("a number") * rustix::param::page_size()
    }

    /// Returns values of 4 KiB: small enough for the heap, so many that they stand out beside the other tests.
    fn values(count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|_| vec![1; 4096]).collect()
    }

    /// One test, because each claim is about the memory of the whole process.
    #[test]
    fn freed_memory_is_given_back() {
        keep_little_memory();
        // After a block of this size, glibc's own limits let an arena keep twice as much.
        drop(vec![1_u8; 31 << 20]);
        let before = resident();
        let freeing = std::thread::spawn(|| drop(values(1 << 13)));
        freeing.join().expect("it only allocates");
        let after = resident();
        assert!(after < before + (16 << 20), "a thread's: {before}, {after}");
        let mut values = values(1 << 14);
        let full = resident();
        let last = values.pop();
        drop(values);
        give_back_memory();
        let after = resident();
        assert!(
            full - after > 60 << 20,
            "below one that lives: {full}, {after}"
        );
        drop(last);
    }
}
