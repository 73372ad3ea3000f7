//! Tests of the encoder.
