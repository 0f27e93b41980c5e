//! Looks at the threads of a test. Rooms include this file by its path, because no room depends on the tests of the whole.

/// Returns true if this process has a thread of this name.
pub(crate) fn has_thread(name: &str) -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux has it");
    let mut names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.any(|known| known.trim_end() == name)
}
