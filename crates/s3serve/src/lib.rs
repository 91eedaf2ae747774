//! holdfast-s3serve
