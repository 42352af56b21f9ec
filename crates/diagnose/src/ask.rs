//! Remedies that people believe in, checked against what was measured.
