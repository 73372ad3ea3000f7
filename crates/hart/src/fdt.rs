//! Flattened device trees.
