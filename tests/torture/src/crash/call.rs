//! A system call of a stopped thread as the kernel shows it: its number, its arguments, and its kind.

use nix::libc::{self, c_long};
use nix::unistd::Pid;

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Every call.
    All,
    /// Calls that change something on disk.
    Writing,
    /// Calls that change nothing there.
    Others,
}

impl Calls {
    /// True if a call is of this kind.
    pub(super) fn has(self, call: &Call) -> bool {
        match self {
            Calls::All => true,
            Calls::Writing => call.writes(),
            Calls::Others => !call.writes(),
        }
    }
}

/// A call that is about to begin.
pub(super) struct Call {
    number: c_long,
    arguments: [u64; 3],
}

/// The calls that reports name; all others are `other`.
const NAMES: &[(c_long, &str)] = &[
    (libc::SYS_openat, "openat"),
    (libc::SYS_openat2, "openat2"),
    (libc::SYS_read, "read"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_write, "write"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_pwritev, "pwritev"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_syncfs, "syncfs"),
    (libc::SYS_sync_file_range, "sync_file_range"),
    (libc::SYS_renameat, "renameat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_linkat, "linkat"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_fallocate, "fallocate"),
    (libc::SYS_fchmodat, "fchmodat"),
    (libc::SYS_fchmod, "fchmod"),
    (libc::SYS_getdents64, "getdents64"),
    (libc::SYS_newfstatat, "newfstatat"),
    (libc::SYS_fstat, "fstat"),
    (libc::SYS_statx, "statx"),
    (libc::SYS_lseek, "lseek"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_close, "close"),
    (libc::SYS_mmap, "mmap"),
    (libc::SYS_munmap, "munmap"),
    (libc::SYS_mprotect, "mprotect"),
    (libc::SYS_madvise, "madvise"),
    (libc::SYS_brk, "brk"),
    (libc::SYS_futex, "futex"),
    (libc::SYS_clone3, "clone3"),
    (libc::SYS_rt_sigprocmask, "rt_sigprocmask"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_sched_getaffinity, "sched_getaffinity"),
    (libc::SYS_sigaltstack, "sigaltstack"),
    (libc::SYS_rt_sigaction, "rt_sigaction"),
    (libc::SYS_getrandom, "getrandom"),
    (libc::SYS_set_robust_list, "set_robust_list"),
    (libc::SYS_rseq, "rseq"),
    (libc::SYS_prlimit64, "prlimit64"),
    (libc::SYS_gettid, "gettid"),
    (libc::SYS_getpid, "getpid"),
    (libc::SYS_geteuid, "geteuid"),
    (libc::SYS_exit, "exit"),
    (libc::SYS_exit_group, "exit_group"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, "mkdir"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, "rename"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, "unlink"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, "chmod"),
];

/// The calls among them that change something on disk; `openat` does so when it makes a file.
const WRITING: &[c_long] = &[
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_syncfs,
    libc::SYS_sync_file_range,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fchmodat,
    libc::SYS_fchmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
];

impl Call {
    /// Reads the call at which a thread is stopped; `None` if the thread is gone.
    pub(super) fn of(thread: Pid) -> Option<Call> {
        // The number is decimal, the arguments are hexadecimal.
        let text = std::fs::read_to_string(format!("/proc/{thread}/syscall")).ok()?;
        let mut words = text.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        Some(Call {
            number,
            arguments: [argument()?, argument()?, argument()?],
        })
    }

    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        NAMES
            .iter()
            .find(|(number, _)| *number == self.number)
            .map_or("other", |(_, name)| name)
    }

    /// The address, in the thread's memory, of the path that the call opens; `None` for other calls.
    pub(super) fn path(&self) -> Option<u64> {
        let opens = [libc::SYS_openat, libc::SYS_openat2].contains(&self.number);
        opens.then_some(self.arguments[1])
    }

    fn writes(&self) -> bool {
        let makes = u64::from(libc::O_CREAT.unsigned_abs());
        WRITING.contains(&self.number)
            || (self.number == libc::SYS_openat && self.arguments[2] & makes != 0)
    }
}
