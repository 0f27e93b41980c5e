//! Is it a correct message? Every violation of one message at once, with place, found, expected, fix.
