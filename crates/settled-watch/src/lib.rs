//! The live screen of a mailroom. `app` holds the state and answers keys; `draw` and the panes make a frame of it;
//! `live` follows the workspace and owns the terminal, which `terminal` gives back as it was.
//!
//! Everything red or green has a shape and words beside it, and every text of an agent is escaped before it is drawn.

pub mod app;
mod clipboard;
pub mod draw;
mod ink;
pub mod live;
mod panes;
pub mod terminal;

pub use app::App;
pub use ink::Theme;
