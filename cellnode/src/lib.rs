//! holdfast-cellnode
