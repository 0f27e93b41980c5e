//! Gives memory that the process has freed back to the system.

/// Returns every free page of the heap to the system, in all of glibc's arenas. It takes a few milliseconds for tens of
/// MiB, in which no thread can allocate.
///
/// glibc itself only shortens the end of a heap, so one small value that lives keeps all that was freed below it: a
/// process would hold what its busiest moment needed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "neither rustix nor nix wraps malloc_trim")]
pub fn give_back_memory() {
    // SAFETY: the call touches only memory that nobody has allocated, and glibc takes the locks of its arenas for it.
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

    #[test]
    fn freed_memory_below_a_value_that_lives_is_given_back() {
        // Small, so that they are in the heap, and enough to stand out beside the other tests.
        let mut values: Vec<Vec<u8>> = (0..1 << 14).map(|_| vec![1; 4096]).collect();
        let full = resident();
        let last = values.pop();
        drop(values);
        give_back_memory();
        assert!(full - resident() > 60 << 20, "{full} and {}", resident());
        drop(last);
    }
}
