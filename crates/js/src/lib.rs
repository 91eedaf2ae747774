//! The JavaScript engine of cells and Workers, and the API that it offers to them: Web platform, Workers, Durable
//! Objects. An isolate belongs to one thread and does no I/O itself: it asks its embedder, and is told.
