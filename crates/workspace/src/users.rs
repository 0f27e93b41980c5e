//! The users of this machine, as `/etc/passwd` and `/etc/group` name them. Users of other sources are given by
//! number.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A user and the group its files belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// Its number.
    pub uid: u32,
    /// The number of its group.
    pub gid: u32,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.uid, self.gid)
    }
}

/// A user as somebody names it on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// By the name the system knows.
    Name(String),
    /// By number, perhaps with the group's.
    Number(u32, Option<u32>),
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number < u32::MAX);
        let expected = || format!("`{text}` is no user: expected a name, UID or UID:GID");
        match text.split_once(':') {
            Some((uid, gid)) => match (number(uid), number(gid)) {
                (Some(uid), Some(gid)) => Ok(Self::Number(uid, Some(gid))),
                _ => Err(expected()),
            },
            None if text.is_empty() => Err(expected()),
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => number(text)
                .map(|uid| Self::Number(uid, None))
                .ok_or_else(expected),
            None => Ok(Self::Name(text.to_owned())),
        }
    }
}

/// The users the system knows.
#[derive(Debug, Default)]
pub struct Users {
    passwd: String,
    group: String,
}

impl Users {
    /// Reads the system's files; what cannot be read knows nobody.
    pub fn of_system() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            passwd: read("/etc/passwd"),
            group: read("/etc/group"),
        }
    }

    /// The user somebody named. One who is given by number and is not known has a group of the same number.
    pub fn find(&self, named: &Named) -> Result<User, String> {
        match named {
            Named::Number(uid, Some(gid)) => Ok(User {
                uid: *uid,
                gid: *gid,
            }),
            Named::Number(uid, None) => {
                let known = self.lines().find(|(_, user)| user.uid == *uid);
                Ok(known.map_or(
                    User {
                        uid: *uid,
                        gid: *uid,
                    },
                    |(_, user)| user,
                ))
            }
            Named::Name(name) => self
                .lines()
                .find(|(known, _)| known == name)
                .map(|(_, user)| user)
                .ok_or_else(|| format!("there is no user `{name}` in /etc/passwd")),
        }
    }

    /// What the system calls the user of this number.
    pub fn name(&self, uid: u32) -> Option<String> {
        self.lines()
            .find(|(_, known)| known.uid == uid)
            .map(|(name, _)| name.to_owned())
    }

    /// Whether a user is in a group without its being its own.
    pub(crate) fn is_member(&self, user: User, gid: u32) -> bool {
        let names: BTreeSet<&str> = self
            .lines()
            .filter(|(_, known)| known.uid == user.uid)
            .map(|(name, _)| name)
            .collect();
        self.group.lines().any(|line| {
            let mut fields = line.split(':').skip(2);
            let is_it = fields.next().and_then(|number| number.parse().ok()) == Some(gid);
            is_it
                && fields
                    .next()
                    .is_some_and(|members| members.split(',').any(|name| names.contains(name)))
        })
    }

    fn lines(&self) -> impl Iterator<Item = (&str, User)> {
        self.passwd.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let mut numbers = fields.skip(1).map(str::parse);
            Some((
                name,
                User {
                    uid: numbers.next()?.ok()?,
                    gid: numbers.next()?.ok()?,
                },
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_by_name_or_number() {
        let users = Users {
            passwd: "root:x:0:0::/root:/bin/sh\nclaude:x:1001:1011::/:/bin/sh\n".to_owned(),
            group: "claude:x:1011:\nshared:x:1012:x,claude\n".to_owned(),
        };
        let find = |text: &str| text.parse().and_then(|named| users.find(&named));
        assert_eq!(
            find("claude"),
            Ok(User {
                uid: 1001,
                gid: 1011
            })
        );
        assert_eq!(
            find("1001"),
            Ok(User {
                uid: 1001,
                gid: 1011
            })
        );
        assert_eq!(find("1001:5"), Ok(User { uid: 1001, gid: 5 }));
        assert_eq!(
            find("2000"),
            Ok(User {
                uid: 2000,
                gid: 2000
            })
        );
        for bad in ["codex", "", "1:x", ":", "4294967295", "99999999999"] {
            assert!(find(bad).is_err(), "{bad:?} was taken for a user");
        }
        let claude = User {
            uid: 1001,
            gid: 1011,
        };
        assert!(users.is_member(claude, 1012) && !users.is_member(claude, 1011));
    }
}
