//! The decoder: packets in, events out.
