//! Nothing but tests, which are in the files beside this one.
