//! What every test of the whole shares.
