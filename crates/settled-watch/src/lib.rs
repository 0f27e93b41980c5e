//! The live screen of a mailroom. `app` holds the state and handles keys; `draw` and the panes make a frame of it;
//! `live` follows the workspace and owns the terminal, which `terminal` restores.
//!
//! Everything in colour also has a shape and words, and every text of an agent is escaped before it is drawn.

pub mod app;
mod clipboard;
pub mod draw;
mod ink;
pub mod live;
mod panes;
pub mod terminal;

pub use app::App;
pub use ink::Theme;
