//! A signed batch: with the host that judged it and that host's signature.

use super::{Batch, Head, HostKeys, HostName};

/// The first line of the bytes that a host signs for a batch, so that the signature fits nothing else.
const DOMAIN: &str = "settled batch 1";

/// A batch, the host that judged it, and that host's signature over [`Signed::bytes`]. The log carries all three and
/// checks only the batch's place; the follower checks the rest.
#[derive(Debug, Clone)]
pub struct Signed {
    /// The batch.
    pub batch: Batch,
    /// The host that judged it.
    pub host: HostName,
    /// That host's signature.
    pub signature: Vec<u8>,
}

impl Signed {
    /// Signs a batch as `host`.
    pub fn new(batch: Batch, workspace: &str, host: HostName, keys: &dyn HostKeys) -> Signed {
        let signature = keys.sign(&Signed::bytes(&batch, workspace, &host));
        Signed {
            batch,
            host,
            signature,
        }
    }

    /// Returns whether the owner of this public key signed the batch for this workspace under this host's name.
    pub fn is_by(&self, key: &str, workspace: &str, keys: &dyn HostKeys) -> bool {
        let bytes = Signed::bytes(&self.batch, workspace, &self.host);
        keys.is_signed(key, &bytes, &self.signature)
    }

    /// Returns the bytes that a host signs: the workspace, its own name, the end that the batch follows, and the lines.
    pub fn bytes(batch: &Batch, workspace: &str, host: &HostName) -> Vec<u8> {
        let Head { seq, digest } = batch.after();
        // Neither names nor numbers hold a newline, so two different batches never give the same bytes.
        let mut signed = format!(
            "{DOMAIN}\n{}\n{workspace}\n{host}\n{seq}\n{digest}\n",
            workspace.len()
        )
        .into_bytes();
        signed.extend_from_slice(batch.bytes());
        signed
    }
}
