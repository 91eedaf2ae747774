//! Process tests.
