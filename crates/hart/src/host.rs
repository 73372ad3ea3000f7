//! What the program asks of the host.
