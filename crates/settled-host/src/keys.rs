//! The Ed25519 key of a host: made when the host joins, in a file that only the daemon's user can read. The ledger has
//! its public half, with which every other host verifies this host's batches.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use message_schema::hex;
use spool::log::HostKeys;

/// The start of a key file, before the key's 64 hex digits.
const FORM: &str = "settled-host-key-1 ";

/// The start of a public key, before its 64 hex digits.
const PUBLIC: &str = "ed25519:";

/// More than any key file has.
const BYTES_MAX: u64 = 1024;

/// The key of this host.
pub struct HostKey(SigningKey);

/// The reason a key cannot be loaded or made.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Others can read the file.
    #[error(
        "{path} has mode {mode:04o} and belongs to user {owner}, expected 0600 and user {user}: whoever reads it can \
         judge in this host's name",
        path = path.display()
    )]
    Readable {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// Its owner.
        owner: u32,
        /// The user that has to own it.
        user: u32,
    },
    /// The file does not contain a key.
    #[error("{path} holds no key of a host", path = path.display())]
    NotAKey {
        /// The file.
        path: PathBuf,
    },
}

impl HostKey {
    /// Reads the key of a host that has joined.
    pub fn load(path: &Path) -> Result<HostKey, KeyError> {
        let mut text = String::new();
        let (file, path) = (private(path)?, path.to_owned());
        let read = file.take(BYTES_MAX).read_to_string(&mut text);
        if let Err(source) = read {
            return Err(KeyError::Io { path, source });
        }
        let digits = text.trim_end().strip_prefix(FORM).and_then(hex::read);
        match digits.and_then(|bytes| bytes.try_into().ok()) {
            Some(seed) => Ok(HostKey(SigningKey::from_bytes(&seed))),
            None => Err(KeyError::NotAKey { path }),
        }
    }

    /// Makes a key if none exists. A kill leaves no file or a whole one. An existing key is never overwritten, because
    /// the ledger may already have its public half.
    pub fn make(path: &Path) -> Result<HostKey, KeyError> {
        let failed = |source| KeyError::Io {
            path: path.to_owned(),
            source,
        };
        let mut seed = [0; 32];
        let mut filled = 0;
        while filled < seed.len() {
            let more =
                rustix::rand::getrandom(&mut seed[filled..], rustix::rand::GetRandomFlags::empty());
            filled += more.map_err(|error| failed(error.into()))?;
        }
        let key = SigningKey::from_bytes(&seed);
        let fresh = path.with_extension("new");
        match std::fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&fresh)
            .map_err(failed)?;
        writeln!(file, "{FORM}{}", hex::write(&seed))
            .and_then(|()| file.sync_all())
            // Unlike a rename, a hard link never replaces an existing file.
            .and_then(|()| std::fs::hard_link(&fresh, path))
            .and_then(|()| std::fs::remove_file(&fresh))
            .map_err(failed)?;
        if let Some(directory) = path.parent() {
            File::open(directory)
                .and_then(|directory| directory.sync_all())
                .map_err(failed)?;
        }
        Ok(HostKey(key))
    }

    /// The public half, in the form the ledger has it.
    pub fn public(&self) -> String {
        format!("{PUBLIC}{}", hex::write(self.0.verifying_key().as_bytes()))
    }
}

impl HostKeys for HostKey {
    fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.0.sign(bytes).to_bytes().to_vec()
    }

    fn is_signed(&self, key: &str, bytes: &[u8], signature: &[u8]) -> bool {
        let key = key.strip_prefix(PUBLIC).and_then(hex::read);
        let key = key.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let key = key.and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
        let signature = Signature::from_slice(signature).ok();
        // Strict verification refuses weak keys, with which one signature fits many texts.
        key.zip(signature)
            .is_some_and(|(key, signature)| key.verify_strict(bytes, &signature).is_ok())
    }
}

/// Opens a file that only this process's user can read. Checks the file after opening it, so that nobody can swap it in
/// between.
pub(crate) fn private(path: &Path) -> Result<File, KeyError> {
    let failed = |source| KeyError::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let stat = file.metadata().map_err(failed)?;
    let (mode, owner) = (stat.mode() & 0o7777, stat.uid());
    let user = rustix::process::geteuid().as_raw();
    // Root, for example a service manager, may own the secrets of a service.
    let is_ours = owner == user || owner == 0;
    if mode & 0o077 != 0 || !is_ours {
        return Err(KeyError::Readable {
            path: path.to_owned(),
            mode,
            owner,
            user,
        });
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_signs_what_its_public_half_confirms_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        let key = HostKey::make(&path).expect("a key");
        let again = HostKey::load(&path).expect("the key");
        assert_eq!(key.public(), again.public());
        let signature = key.sign(b"a batch");
        assert!(again.is_signed(&key.public(), b"a batch", &signature));
        assert!(!again.is_signed(&key.public(), b"another batch", &signature));
        assert!(!again.is_signed("ed25519:00", b"a batch", &signature));
        assert!(!again.is_signed(&key.public(), b"a batch", &signature[1..]));
        let other = HostKey::make(&directory.path().join("other")).expect("a key");
        assert!(!again.is_signed(&other.public(), b"a batch", &signature));
    }

    #[test]
    fn a_weak_public_key_signs_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let key = HostKey::make(&directory.path().join("key")).expect("a key");
        // The neutral element: without strict verification, this signature fits every text.
        let weak = format!("{PUBLIC}01{}", "00".repeat(31));
        let mut signature = [0; 64];
        signature[0] = 1;
        assert!(!key.is_signed(&weak, b"a batch", &signature));
    }

    #[test]
    fn a_key_that_others_can_read_is_refused_and_one_that_is_there_is_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        let key = HostKey::make(&path).expect("a key");
        let mode = std::fs::metadata(&path)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert!(HostKey::make(&path).is_err(), "a second key");
        let kept = HostKey::load(&path).expect("the first key");
        assert_eq!(kept.public(), key.public());
        let open = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(&path, open).expect("a mode");
        assert!(matches!(
            HostKey::load(&path),
            Err(KeyError::Readable { mode: 0o640, .. })
        ));
    }

    #[test]
    fn a_file_that_holds_no_key_is_told_from_one_that_cannot_be_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        let missing = HostKey::load(&path).err();
        assert!(matches!(missing, Some(KeyError::Io { .. })), "{missing:?}");
        HostKey::make(&path).expect("a key");
        let whole = std::fs::read_to_string(&path).expect("a text");
        assert_eq!(whole.len(), FORM.len() + 64 + 1);
        for text in ["", "a key", FORM, &whole[..whole.len() - 3], &whole[1..]] {
            std::fs::write(&path, text).expect("a file");
            let told = HostKey::load(&path).err();
            assert!(matches!(told, Some(KeyError::NotAKey { .. })), "{text:?}");
        }
        std::fs::write(&path, &whole).expect("a file");
        assert!(HostKey::load(&path).is_ok());
    }

    #[test]
    fn what_a_kill_left_of_a_key_is_made_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        let fresh = directory.path().join("key.new");
        std::fs::write(&fresh, "half").expect("a file");
        let key = HostKey::make(&path).expect("a key");
        assert!(!fresh.exists());
        let other = HostKey::make(&directory.path().join("other")).expect("a key");
        assert_ne!(key.public(), other.public(), "keys are random");
        // A directory at this path cannot be removed as a file.
        std::fs::create_dir(&fresh).expect("a directory");
        std::fs::remove_file(&path).expect("a file to remove");
        assert!(matches!(HostKey::make(&path), Err(KeyError::Io { .. })));
    }
}
