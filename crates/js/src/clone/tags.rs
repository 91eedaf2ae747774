//! The tags of the format, with the names that V8 has for them.

pub(super) const VERSION: u8 = 0xff;
/// What we write, and the newest that we read.
pub(super) const LATEST_VERSION: u32 = 15;
/// Before it, views were laid out in another way; no Node that is still in use writes that.
pub(super) const OLDEST_VERSION: u32 = 13;
/// From here on a view has flags.
pub(super) const VERSION_WITH_VIEW_FLAGS: u32 = 14;

pub(super) const PADDING: u8 = 0;
pub(super) const VERIFY_OBJECT_COUNT: u8 = b'?';
pub(super) const THE_HOLE: u8 = b'-';
pub(super) const UNDEFINED: u8 = b'_';
pub(super) const NULL: u8 = b'0';
pub(super) const TRUE: u8 = b'T';
pub(super) const FALSE: u8 = b'F';
pub(super) const INT32: u8 = b'I';
pub(super) const UINT32: u8 = b'U';
pub(super) const DOUBLE: u8 = b'N';
pub(super) const BIG_INT: u8 = b'Z';
pub(super) const UTF8_STRING: u8 = b'S';
pub(super) const ONE_BYTE_STRING: u8 = b'"';
pub(super) const TWO_BYTE_STRING: u8 = b'c';
pub(super) const OBJECT_REFERENCE: u8 = b'^';
pub(super) const BEGIN_OBJECT: u8 = b'o';
pub(super) const END_OBJECT: u8 = b'{';
pub(super) const BEGIN_SPARSE_ARRAY: u8 = b'a';
pub(super) const END_SPARSE_ARRAY: u8 = b'@';
pub(super) const BEGIN_DENSE_ARRAY: u8 = b'A';
pub(super) const END_DENSE_ARRAY: u8 = b'$';
pub(super) const DATE: u8 = b'D';
pub(super) const TRUE_OBJECT: u8 = b'y';
pub(super) const FALSE_OBJECT: u8 = b'x';
pub(super) const NUMBER_OBJECT: u8 = b'n';
pub(super) const BIG_INT_OBJECT: u8 = b'z';
pub(super) const STRING_OBJECT: u8 = b's';
pub(super) const REG_EXP: u8 = b'R';
pub(super) const BEGIN_MAP: u8 = b';';
pub(super) const END_MAP: u8 = b':';
pub(super) const BEGIN_SET: u8 = b'\'';
pub(super) const END_SET: u8 = b',';
pub(super) const ARRAY_BUFFER: u8 = b'B';
pub(super) const RESIZABLE_ARRAY_BUFFER: u8 = b'~';
pub(super) const ARRAY_BUFFER_TRANSFER: u8 = b't';
pub(super) const ARRAY_BUFFER_VIEW: u8 = b'V';
pub(super) const ERROR: u8 = b'r';
pub(super) const HOST_OBJECT: u8 = b'\\';

/// Within an error.
pub(super) const ERROR_MESSAGE: u8 = b'm';
pub(super) const ERROR_CAUSE: u8 = b'c';
pub(super) const ERROR_STACK: u8 = b's';
pub(super) const ERROR_END: u8 = b'.';

/// Our host object: a DOMException with name, message and stack. Node numbers its own from 0.
pub(super) const HOST_DOM_EXCEPTION: u32 = 100;
/// Our host object: a number that stands for something that is not cloned.
pub(super) const HOST_REFERENCE: u32 = 101;
