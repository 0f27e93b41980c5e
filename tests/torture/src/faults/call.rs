//! The calls with which the daemon reaches the disk, and the errors that each can return.

/// An error of a call, under the system's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Errno {
    /// The device does not answer.
    Io,
    /// No space is left.
    NoSpace,
    /// The user's quota is used up.
    Quota,
    /// The process has too many open files.
    TooManyFiles,
    /// Permission is denied.
    Access,
    /// The file system is read-only, from the start or by now.
    ReadOnly,
    /// The two names are on different file systems.
    CrossDevice,
    /// A signal interrupted the call.
    Interrupted,
    /// There are too many threads or locks.
    Again,
}

impl Errno {
    /// Returns the name used by `strace` and the manuals.
    pub fn name(self) -> &'static str {
        match self {
            Errno::Io => "EIO",
            Errno::NoSpace => "ENOSPC",
            Errno::Quota => "EDQUOT",
            Errno::TooManyFiles => "EMFILE",
            Errno::Access => "EACCES",
            Errno::ReadOnly => "EROFS",
            Errno::CrossDevice => "EXDEV",
            Errno::Interrupted => "EINTR",
            Errno::Again => "EAGAIN",
        }
    }

    /// Returns the number with which Rust's error texts end on Linux.
    pub fn number(self) -> i32 {
        match self {
            Errno::Io => 5,
            Errno::NoSpace => 28,
            Errno::Quota => 122,
            Errno::TooManyFiles => 24,
            Errno::Access => 13,
            Errno::ReadOnly => 30,
            Errno::CrossDevice => 18,
            Errno::Interrupted => 4,
            Errno::Again => 11,
        }
    }
}

/// A system call and its failures.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Its name.
    pub name: &'static str,
    /// The errors it can return, the likeliest first.
    pub errnos: &'static [Errno],
    /// More errors it can return when it makes a file.
    pub making: &'static [Errno],
    /// True if it makes something durable.
    pub is_sync: bool,
}

const NONE: &[Errno] = &[];
const MAKING: &[Errno] = &[Errno::NoSpace, Errno::Quota, Errno::ReadOnly];

const fn call(name: &'static str, errnos: &'static [Errno]) -> Call {
    Call {
        name,
        errnos,
        making: NONE,
        is_sync: false,
    }
}

const fn open(name: &'static str) -> Call {
    let errnos = &[
        Errno::Io,
        Errno::TooManyFiles,
        Errno::Access,
        Errno::Interrupted,
    ];
    Call {
        making: MAKING,
        ..call(name, errnos)
    }
}

const fn sync(name: &'static str) -> Call {
    let errnos = &[
        Errno::Io,
        Errno::NoSpace,
        Errno::Quota,
        Errno::ReadOnly,
        Errno::Interrupted,
    ];
    Call {
        is_sync: true,
        ..call(name, errnos)
    }
}

const READ: &[Errno] = &[Errno::Io, Errno::Interrupted];
const WRITE: &[Errno] = &[
    Errno::Io,
    Errno::NoSpace,
    Errno::Quota,
    Errno::ReadOnly,
    Errno::Interrupted,
];
const STAT: &[Errno] = &[Errno::Io, Errno::Access];
const RENAME: &[Errno] = &[
    Errno::Io,
    Errno::NoSpace,
    Errno::Quota,
    Errno::Access,
    Errno::ReadOnly,
    Errno::CrossDevice,
];
const MAKE: &[Errno] = &[
    Errno::Io,
    Errno::NoSpace,
    Errno::Quota,
    Errno::Access,
    Errno::ReadOnly,
];

/// Every call of the daemon that a disk can fail, and the start of a thread.
pub const CALLS: [Call; 24] = [
    open("openat"),
    open("openat2"),
    call("read", READ),
    call("pread64", READ),
    call("write", WRITE),
    call("pwrite64", WRITE),
    sync("fsync"),
    sync("fdatasync"),
    sync("syncfs"),
    call("renameat", RENAME),
    call("renameat2", RENAME),
    call("rename", RENAME),
    call("unlinkat", &[Errno::Io, Errno::Access, Errno::ReadOnly]),
    call("unlink", &[Errno::Io, Errno::Access, Errno::ReadOnly]),
    call("getdents64", READ),
    call("statx", STAT),
    call("newfstatat", STAT),
    call("fstat", STAT),
    call("mkdir", MAKE),
    call("mkdirat", MAKE),
    call(
        "ftruncate",
        &[Errno::Io, Errno::ReadOnly, Errno::Interrupted],
    ),
    call("flock", &[Errno::Io, Errno::Interrupted]),
    call("fchmod", &[Errno::Io, Errno::ReadOnly]),
    call("clone3", &[Errno::Again]),
];
