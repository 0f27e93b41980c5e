//! Writes orders of people and runners durably, one file each in `.settled/orders/`, and reads them back. The rules
//! decide what an order does to a review.
//!
//! An order counts like a person's decision, so only the owner of `.settled` can write there.

mod check;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use message_schema::id::MessageId;
use message_schema::limit::MESSAGE_BYTES_MAX;
use review::Event;
use serde::{Deserialize, Serialize};
use spool::Layout;

pub use self::check::{TEXT_MAX, check, is_fit};

/// The version of an order's form.
const VERSION: u32 = 1;

/// The directory below it for files that are not orders.
const UNREADABLE: &str = "unreadable";

/// The largest order, in bytes: as much as a message.
const SIZE_MAX: u64 = MESSAGE_BYTES_MAX;

/// The time for which a file may stay incomplete, in milliseconds: not every writer renames it into place.
const PATIENCE_MS: i64 = 2_000;

/// The write permissions of everyone except the owner.
const OTHERS_WRITE: u32 = 0o022;

/// An order of a person or a runner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The version of the form: 1.
    pub schema_version: u32,
    /// Its id; an id counts once.
    pub id: MessageId,
    /// The time at which it was given.
    pub asked_at: DateTime<Utc>,
    /// The event that it reports; never a deadline, which only the daemon reports.
    pub event: Event,
}

/// The reason a file is not read as an order.
#[derive(Debug, thiserror::Error)]
pub enum NoOrder {
    /// The file is not an order.
    #[error("{0}")]
    Unfit(String),
    /// The file is new and may be incomplete; the daemon reads it again.
    #[error("{0}; it may still be written")]
    Young(String),
    /// The disk failed; the daemon retries.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Order {
    /// An order in the current form.
    pub fn new(id: MessageId, asked_at: DateTime<Utc>, event: Event) -> Self {
        Self {
            schema_version: VERSION,
            id,
            asked_at,
            event,
        }
    }

    /// Parses an order; the error says what would have been accepted.
    fn parse(text: &[u8]) -> Result<Self, String> {
        let order: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if order.schema_version != VERSION {
            return Err(format!(
                "schema_version is {}, expected {VERSION}",
                order.schema_version
            ));
        }
        check(&order.event).map(|()| order)
    }

    /// The file's name, which sorts orders by time.
    fn file_name(&self) -> String {
        format!(
            "{}_{}.json",
            self.asked_at.format("%Y%m%dT%H%M%S%3fZ"),
            self.id.as_str().replace(':', "=")
        )
    }
}

/// The path of the directory for orders.
pub fn directory(root: &Path) -> PathBuf {
    Layout::new(root).orders()
}

/// Creates the directory for orders if it is missing, and lets only the owner write there. True if it is new.
pub fn make(root: &Path) -> io::Result<bool> {
    let layout = Layout::new(root);
    let (own, orders) = (layout.own(), layout.orders());
    made(DirBuilder::new().mode(0o755).create(&own))?;
    let is_new = made(DirBuilder::new().mode(0o700).create(&orders))?;
    for directory in [orders, own] {
        let data = directory.symlink_metadata()?;
        if !data.is_dir() {
            let what = format!("{} is not a directory", directory.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, what));
        }
        // The umask may have been too open when the workspace was created: a user who can rename a directory in
        // `.settled` could replace this one with their own orders.
        if data.mode() & OTHERS_WRITE != 0 {
            std::fs::set_permissions(
                &directory,
                Permissions::from_mode(data.mode() & 0o7777 & !OTHERS_WRITE),
            )?;
        }
    }
    Ok(is_new)
}

fn made(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes an order durably and returns its path. The daemon removes the file once the order is in the ledger.
pub fn write(root: &Path, order: &Order) -> io::Result<PathBuf> {
    make(root)?;
    let directory = directory(root);
    let path = directory.join(order.file_name());
    let temporary = directory.join(format!(".{}.tmp", order.file_name()));
    let text = serde_json::to_string(order).expect("orders have text keys and plain values") + "\n";
    let written = File::create_new(&temporary).and_then(|mut file| {
        // A daemon of another user has to read what root wrote; the directory keeps everybody else out.
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, &path)?;
        File::open(&directory)?.sync_all()
    });
    if written.is_err() {
        // If this fails too, a file remains under a name that the daemon ignores.
        let _ = std::fs::remove_file(&temporary);
    }
    written.map(|()| path)
}

/// The names of the waiting orders, oldest first, without dotfiles and files that do not end in `.json`. Fails if
/// anyone but the owner could have written there.
pub fn waiting(root: &Path) -> io::Result<Vec<OsString>> {
    let directory = directory(root);
    let listed = match std::fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    for place in [&directory, &Layout::new(root).own()] {
        if place.symlink_metadata()?.mode() & OTHERS_WRITE != 0 {
            let what = format!(
                "users other than its owner can write to {}",
                place.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
    }
    let mut names = Vec::new();
    for entry in listed {
        let name = entry?.file_name();
        let bytes = name.as_bytes();
        if !bytes.starts_with(b".") && bytes.ends_with(b".json") {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Reads a waiting order; `None` if it is gone.
pub fn read(root: &Path, name: &OsStr, now: DateTime<Utc>) -> Result<Option<Order>, NoOrder> {
    let directory = directory(root);
    let path = directory.join(name);
    let looked = directory
        .symlink_metadata()
        .and_then(|own| Ok((own, path.symlink_metadata()?)));
    let (own, data) = match looked {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        looked => looked?,
    };
    if let Some(why) = unfit(&data, &own) {
        return Err(NoOrder::Unfit(why));
    }
    if name.to_str().is_none() {
        return Err(NoOrder::Unfit("its name is not text".to_owned()));
    }
    let mut text = Vec::new();
    OpenOptions::new()
        .read(true)
        .open(&path)?
        .take(SIZE_MAX)
        .read_to_end(&mut text)?;
    Order::parse(&text).map(Some).map_err(|why| {
        let age = now.timestamp_millis() - (data.mtime() * 1_000 + data.mtime_nsec() / 1_000_000);
        if (0..PATIENCE_MS).contains(&age) {
            NoOrder::Young(why)
        } else {
            NoOrder::Unfit(why)
        }
    })
}

/// The reason not to open a file. Until it is opened, only a user who may write orders could replace it.
fn unfit(data: &Metadata, own: &Metadata) -> Option<String> {
    if !data.is_file() {
        return Some("it is not a regular file".to_owned());
    }
    if data.len() > SIZE_MAX {
        return Some(format!(
            "it has {} bytes, expected at most {SIZE_MAX}",
            data.len()
        ));
    }
    if !may_order(data.uid(), own.uid()) {
        return Some(format!(
            "it belongs to user {}, expected {} or root",
            data.uid(),
            own.uid()
        ));
    }
    None
}

/// True if this user's orders count in a workspace of this owner: root may give orders to another user's daemon.
fn may_order(user: u32, owner: u32) -> bool {
    user == owner || user == 0
}

/// Moves a file that is not an order aside for a person to examine, with a number if its name is taken there.
pub fn put_aside(root: &Path, name: &OsStr) -> io::Result<()> {
    let directory = directory(root);
    let aside = directory.join(UNREADABLE);
    made(DirBuilder::new().mode(0o700).create(&aside))?;
    let mut free = aside.join(name);
    for number in 1_u32.. {
        match free.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            taken => taken?,
        };
        let mut numbered = name.to_owned();
        numbered.push(format!(".{number}"));
        free = aside.join(numbered);
    }
    std::fs::rename(directory.join(name), free)
}

/// True if a file with this name was moved aside.
pub fn is_put_aside(root: &Path, name: &OsStr) -> bool {
    directory(root)
        .join(UNREADABLE)
        .join(name)
        .symlink_metadata()
        .is_ok()
}

/// Removes an order that is in the ledger. If a kill or a power cut prevents this, the ledger still knows its id.
pub fn remove(root: &Path, name: &OsStr) -> io::Result<()> {
    match std::fs::remove_file(directory(root).join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
