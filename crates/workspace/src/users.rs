//! Looks up the users of this machine, wherever the system keeps them: its files, a directory service, systemd.

use std::str::FromStr;
use std::{fmt, io};

use nix::errno::Errno;
use nix::unistd::{self, Gid, Group, Uid};

/// A user and the group of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// The user id.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.uid, self.gid)
    }
}

/// A user as given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserSpec {
    /// A name that the system knows.
    Name(String),
    /// A user id, possibly with a group id.
    Number(u32, Option<u32>),
}

impl FromStr for UserSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number < u32::MAX);
        let expected = || format!("`{text}` is not a user: expected a name, UID or UID:GID");
        match text.split_once(':') {
            Some((uid, gid)) => match (number(uid), number(gid)) {
                (Some(uid), Some(gid)) => Ok(Self::Number(uid, Some(gid))),
                _ => Err(expected()),
            },
            // The empty text too is all digits, and no number.
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => number(text)
                .map(|uid| Self::Number(uid, None))
                .ok_or_else(expected),
            None => Ok(Self::Name(text.to_owned())),
        }
    }
}

impl UserSpec {
    /// Looks the user up. A user id that the system does not know gets the group id of the same number.
    pub fn find(&self) -> Result<User, String> {
        match self {
            Self::Number(uid, Some(gid)) => Ok(User {
                uid: *uid,
                gid: *gid,
            }),
            Self::Number(uid, None) => {
                let known = known(unistd::User::from_uid(Uid::from_raw(*uid)))
                    .map_err(|error| format!("cannot look up user {uid}: {error}"))?;
                Ok(User {
                    uid: *uid,
                    gid: known.map_or(*uid, |known| known.gid.as_raw()),
                })
            }
            Self::Name(name) => known(unistd::User::from_name(name))
                .map_err(|error| format!("cannot look up user `{name}`: {error}"))?
                .map(|known| User {
                    uid: known.uid.as_raw(),
                    gid: known.gid.as_raw(),
                })
                .ok_or_else(|| format!("this machine has no user `{name}`")),
        }
    }
}

/// The name of the user with this id, if the system knows it.
pub fn name(uid: u32) -> Option<String> {
    let known = known(unistd::User::from_uid(Uid::from_raw(uid)));
    known.ok().flatten().map(|known| known.name)
}

/// The name of the user that this process runs as: from the system, or else from the session, or else the user id.
pub fn login() -> String {
    let uid = rustix::process::getuid().as_raw();
    let session = || {
        std::env::var("LOGNAME")
            .or_else(|_| std::env::var("USER"))
            .ok()
    };
    name(uid)
        .or_else(session)
        .unwrap_or_else(|| format!("user {uid}"))
}

/// True if the group lists the user as a member; a user's own group need not list it.
pub fn is_member(user: User, gid: u32) -> io::Result<bool> {
    let Some(group) = known(Group::from_gid(Gid::from_raw(gid)))? else {
        return Ok(false);
    };
    for name in &group.mem {
        // Compared by user id, because one user may have several names.
        let member = known(unistd::User::from_name(name))?;
        if member.is_some_and(|member| member.uid.as_raw() == user.uid) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Treats the errors with which some systems report an unknown user as that answer.
fn known<T>(looked_up: nix::Result<Option<T>>) -> io::Result<Option<T>> {
    match looked_up {
        Err(Errno::ENOENT | Errno::ESRCH) => Ok(None),
        answer => Ok(answer?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Result<User, String> {
        text.parse::<UserSpec>()?.find()
    }

    #[test]
    fn a_user_is_named_by_name_or_number() {
        let root = User { uid: 0, gid: 0 };
        assert_eq!(find("root"), Ok(root));
        assert_eq!(find("0"), Ok(root));
        assert_eq!(find("1001:5"), Ok(User { uid: 1001, gid: 5 }));
        assert_eq!(name(0).as_deref(), Some("root"));
        for bad in ["no-such-user", "", "1:x", ":", "4294967295", "99999999999"] {
            assert!(find(bad).is_err(), "{bad:?} was taken for a user");
        }
    }

    #[test]
    fn a_number_nobody_has_is_its_own_group_and_in_no_other() {
        let stranger = User {
            uid: 3_999_999_999,
            gid: 3_999_999_999,
        };
        assert_eq!(find("3999999999"), Ok(stranger));
        assert_eq!(name(stranger.uid), None);
        for gid in [0, stranger.gid] {
            assert!(!is_member(stranger, gid).expect("the system can be asked"));
        }
    }

    /// The members of groups differ between machines, so this test takes them from the system.
    #[test]
    fn a_group_has_the_members_that_the_system_lists() {
        let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
        let listed = groups.lines().find_map(|line| {
            let mut fields = line.split(':').skip(2);
            let gid = fields.next()?.parse().ok()?;
            let member = fields.next()?.split(',').next()?;
            Some((find(member).ok()?, gid))
        });
        if let Some((member, gid)) = listed {
            assert!(is_member(member, gid).expect("the system can be asked"));
        }
    }

    #[test]
    fn a_user_is_written_with_both_numbers_and_a_login_is_a_name() {
        assert_eq!(User { uid: 1001, gid: 5 }.to_string(), "1001:5");
        if let Some(known) = name(rustix::process::getuid().as_raw()) {
            assert_eq!(login(), known);
        }
    }

    #[test]
    fn a_user_that_a_system_reports_as_missing_is_unknown() {
        for missing in [Errno::ENOENT, Errno::ESRCH] {
            assert_eq!(known::<()>(Err(missing)).expect("an answer"), None);
        }
        assert_eq!(known(Ok(Some(7))).expect("an answer"), Some(7));
        known::<()>(Err(Errno::EIO)).expect_err("the system did not answer");
    }
}
