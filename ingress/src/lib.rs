//! holdfast-ingress
