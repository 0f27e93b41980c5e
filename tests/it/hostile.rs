//! Careless and hostile writers: what each of them gets, that nobody else has to wait for them, and that they cannot
//! make the daemon read or write outside the workspace.

mod confined;
mod crowd;
mod files;
mod table;
