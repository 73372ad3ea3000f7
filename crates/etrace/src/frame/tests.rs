//! Tests of framing.
