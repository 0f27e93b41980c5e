//! The signatures of a host's key, whatever its scheme is.

/// Signs for this host and checks what others signed. The scheme and the form of its keys belong to the program that
/// serves a shared workspace; here they are opaque.
pub trait HostKeys: Send {
    /// Signs these bytes with this host's key.
    fn sign(&self, bytes: &[u8]) -> Vec<u8>;
    /// Says whether the owner of this public key signed these bytes.
    fn is_signed(&self, key: &str, bytes: &[u8], signature: &[u8]) -> bool;
}
