//! Careless and hostile writers: what each of them gets, that nobody else waits for them, and that
//! nothing outside of the workspace is read or written for their sake.

mod confined;
mod crowd;
mod files;
mod table;
