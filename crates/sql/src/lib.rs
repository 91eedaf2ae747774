//! holdfast-sql
