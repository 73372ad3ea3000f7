//! Semihosting.
