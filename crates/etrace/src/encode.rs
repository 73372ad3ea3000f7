//! The encoder model: ingress blocks in, packets out.
