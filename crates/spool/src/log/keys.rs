//! The signatures of a host's key, independent of their scheme.

/// Signs for this host and checks what others signed. The program that serves a shared workspace defines the scheme and
/// the form of its keys; here they are opaque.
pub trait HostKeys: Send {
    /// Signs these bytes with this host's key.
    fn sign(&self, bytes: &[u8]) -> Vec<u8>;
    /// Returns whether the owner of this public key signed these bytes.
    fn is_signed(&self, key: &str, bytes: &[u8], signature: &[u8]) -> bool;
}
