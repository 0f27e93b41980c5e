//! What is written in a Settled file: ids, envelope, bodies, packets, the reader with positions, JSON Schemas.
