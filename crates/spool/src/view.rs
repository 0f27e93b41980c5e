//! Answers about a spool while its deliveries go on: the files to judge, and which were judged already.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::packet::{self, PacketRead, Packets};
use crate::root::{NameListing, OpenRoot};
use crate::{Away, Digest, DirectoryStamp, FileName, Now, Original, SpoolError, dirs, layout};
use ledger_records::MESSAGE_FILE_MAX;

/// A spool as seen by intake and judgement, usable while another thread delivers.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) root: &'a OpenRoot,
    pub(crate) judged: &'a JudgedOriginals,
    pub(crate) packets: &'a Packets,
    pub(crate) next_seq: u64,
}

impl View<'_> {
    /// The number the next record gets, from 1.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Returns whether this outbox file was judged already and only waits to be put away.
    pub fn is_judged(&self, agent: &str, file: &FileName) -> bool {
        self.judged.has(agent, file)
    }

    /// Returns the stamp of an agent's inbox, if it exists and an equal stamp will prove that no name was added or
    /// removed since.
    pub fn inbox_stamp(&self, agent: &str, now: Now) -> Result<Option<DirectoryStamp>, SpoolError> {
        match self
            .root
            .dir_if_there(&layout::agent_dir(agent, dirs::INBOX))?
        {
            Some(dir) => self.root.settled_stamp(&dir, now),
            None => Ok(None),
        }
    }

    /// Begins to list an agent's inbox; `None` if there is none.
    pub fn inbox(&self, agent: &str) -> Result<Option<NameListing>, SpoolError> {
        let dir = self
            .root
            .dir_if_there(&layout::agent_dir(agent, dirs::INBOX))?;
        dir.map(|dir| self.root.names(&dir)).transpose()
    }

    /// Returns the digest of a file in an agent's inbox; `None` if it is not a regular file of at most 1 MiB, which is
    /// more than is ever delivered.
    pub fn inbox_digest(&self, agent: &str, file: &FileName) -> Result<Option<Digest>, SpoolError> {
        let Some(dir) = self
            .root
            .dir_if_there(&layout::agent_dir(agent, dirs::INBOX))?
        else {
            return Ok(None);
        };
        let bytes = self.root.bytes(&dir, file, MESSAGE_FILE_MAX)?;
        Ok(bytes.map(|bytes| Digest::of(&bytes)))
    }

    /// Returns the name of an accepted original in `sent/` if its writer changed it after it was judged; `None` if it
    /// is unchanged, missing, or not put away yet.
    pub fn changed_original(
        &self,
        seq: u64,
        original: &Original,
    ) -> Result<Option<FileName>, SpoolError> {
        let (Away::Sent(file), Some(stamp), Some(digest)) =
            (&original.away, original.stamp, original.digest)
        else {
            return Ok(None);
        };
        let root = self.root;
        let Some(dir) = root.dir_if_there(&layout::agent_dir(&original.outbox, dirs::SENT))? else {
            return Ok(None);
        };
        for name in file.variants(seq) {
            let there = root.stat(&dir, &name)?;
            let Some(there) = there.filter(|there| there.ino == stamp.ino) else {
                continue;
            };
            let is_same = there.size == stamp.size
                && (there.mtime_ns == stamp.mtime_ns
                    || root.has_digest(&dir, &name, &digest, stamp.size)?);
            return Ok((!is_same).then_some(name));
        }
        Ok(None)
    }

    /// Reads a packet that a message points to: `path` is relative to the root and must be in `packets/`; the packet
    /// has at most `limit` bytes. It counts as finished once its writer was seen closing it, or after 0.5 s without a
    /// change. With an `owner` given, a packet is read only if that user or the daemon's own owns it.
    pub fn read_packet(
        &self,
        path: &str,
        limit: u64,
        owner: Option<u32>,
        now: Now,
    ) -> Result<PacketRead, SpoolError> {
        packet::read(self.root, self.packets, Path::new(path), limit, owner, now)
    }
}

/// The judged originals that wait to be put away, by agent, each with the number of records that name it.
#[derive(Debug, Default)]
pub(crate) struct JudgedOriginals(Mutex<BTreeMap<String, HashMap<FileName, usize>>>);

impl JudgedOriginals {
    pub(crate) fn has(&self, agent: &str, file: &FileName) -> bool {
        self.locked()
            .get(agent)
            .is_some_and(|files| files.contains_key(file))
    }

    pub(crate) fn add(&self, agent: &str, file: &FileName) {
        let mut agents = self.locked();
        let files = agents.entry(agent.to_owned()).or_default();
        *files.entry(file.clone()).or_default() += 1;
    }

    /// Forgets one record's claim on a file; called once the file has left the outbox, never before. A file that
    /// stays there keeps its claim, or the daemon would judge it again and again.
    pub(crate) fn release(&self, agent: &str, file: &FileName) {
        let mut agents = self.locked();
        let Some(files) = agents.get_mut(agent) else {
            return;
        };
        if let Some(count) = files.get_mut(file) {
            *count -= 1;
            if *count == 0 {
                files.remove(file);
            }
        }
        if files.is_empty() {
            agents.remove(agent);
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, HashMap<FileName, usize>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
