//! The calls by which the daemon meets the disk, and what each of them can fail with.

/// The error of a call, by the name the system gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Errno {
    /// The device does not answer.
    Io,
    /// There is no room.
    NoSpace,
    /// The user's share of the room is used up.
    Quota,
    /// The process has too many open files.
    TooManyFiles,
    /// The user may not.
    Access,
    /// The file system was mounted, or turned, read-only.
    ReadOnly,
    /// The two names are on two file systems.
    CrossDevice,
    /// A signal came first.
    Interrupted,
    /// There are too many threads or locks.
    Again,
}

impl Errno {
    /// The name, as `strace` and manuals have it.
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

    /// The number, as error texts of Rust programs on Linux end with it.
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
    /// The errors it can fail with, the likeliest first.
    pub errnos: &'static [Errno],
    /// More errors it can fail with if it makes a file.
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
