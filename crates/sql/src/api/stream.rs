//! Hrana's streams: what a client keeps between its calls, and the batons that name it. A baton is 128 random bits, new
//! in every reply, so that it cannot be guessed, and an old one is refused. A stream with an open transaction that
//! expires is closed as a whole: its client must not go on in the belief that the transaction still stands.

use std::collections::BTreeMap;

use holdfast_types::Millis;

use super::SqlRuntimeOptions;
use super::hrana::SqlText;
use crate::engine::{Engine, Session};
use crate::error::SqlFailure;
use crate::options::SQL_LEN_MAX;

/// Most stored SQL texts of a stream.
const TEXTS_MAX: usize = 256;

/// One stream, between or during its calls.
#[derive(Debug)]
pub(super) struct Stream {
    id: u64,
    token: u128,
    texts: BTreeMap<i32, String>,
    texts_len: usize,
    session: Session,
    used_at: Millis,
    transaction_since: Option<Millis>,
    /// The client asked to close it.
    pub(super) is_closed: bool,
}

/// All streams of a cell.
#[derive(Debug)]
pub(super) struct Streams {
    options: SqlRuntimeOptions,
    /// In the order of their last calls.
    open: Vec<Stream>,
    next_id: u64,
}

/// Whose turn it is.
pub(super) enum Admission {
    /// This stream may run.
    Run(Box<Stream>),
    /// Another one holds an open transaction.
    Blocked,
    /// The baton names no open stream.
    Stale,
}

impl Streams {
    pub(super) fn new(options: SqlRuntimeOptions) -> Self {
        Self { options, open: Vec::new(), next_id: 1 }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn has_transaction(&self) -> bool {
        self.open.iter().any(|stream| stream.transaction_since.is_some())
    }

    /// Takes the stream of a baton out, or makes a new one, with its settings on the connection.
    ///
    /// # Errors
    /// SQLite's, when the settings cannot be made.
    pub(super) fn admit(
        &mut self,
        engine: &Engine,
        baton: Option<&str>,
        now: Millis,
    ) -> Result<Admission, SqlFailure> {
        let known = match baton {
            None => None,
            Some(baton) => match self.find(baton) {
                Some(index) => Some(index),
                None => return Ok(Admission::Stale),
            },
        };
        let holder = self.open.iter().position(|stream| stream.transaction_since.is_some());
        if holder.is_some() && holder != known {
            return Ok(Admission::Blocked);
        }
        let stream = match known {
            Some(index) => self.open.remove(index),
            None => self.create(now),
        };
        // With a transaction open its settings never left the connection.
        if stream.transaction_since.is_none() {
            engine.enter_session(&stream.session).map_err(|error| session_failure(&error))?;
        }
        Ok(Admission::Run(Box::new(stream)))
    }

    /// Takes a stream back after its call, with its settings off the connection unless a transaction is open. Answers
    /// the next baton, or none when it is closed.
    ///
    /// # Errors
    /// SQLite's; the stream is then closed.
    pub(super) fn settle(
        &mut self,
        engine: &Engine,
        mut stream: Stream,
        now: Millis,
    ) -> Result<Option<String>, SqlFailure> {
        if stream.is_closed {
            end(engine)?;
            return Ok(None);
        }
        if engine.in_transaction() {
            stream.transaction_since.get_or_insert(now);
        } else {
            stream.transaction_since = None;
            stream.session = engine.leave_session().map_err(|error| session_failure(&error))?;
        }
        stream.used_at = now;
        stream.token = random_token();
        let baton = format!("{:x}.{:032x}", stream.id, stream.token);
        self.open.push(stream);
        if self.open.len() > self.options.streams_max.max(1) {
            // Never the one with the transaction: only its own calls run while it is open, so that it is the last.
            self.open.remove(0);
        }
        Ok(Some(baton))
    }

    pub(super) fn next_deadline(&self) -> Option<Millis> {
        self.open.iter().map(|stream| self.deadline(stream)).min()
    }

    pub(super) fn expire(&mut self, engine: &mut Engine, now: Millis) -> bool {
        let mut ended = false;
        let open = std::mem::take(&mut self.open);
        for stream in open {
            if self.deadline(&stream) > now {
                self.open.push(stream);
            } else if stream.transaction_since.is_some() {
                tracing::debug!(stream = stream.id, "rolling back the transaction of a silent stream");
                ended = true;
                log_end(engine);
            }
        }
        ended
    }

    pub(super) fn close(&mut self, engine: &mut Engine) {
        if self.has_transaction() || engine.in_transaction() {
            log_end(engine);
        }
        self.open.clear();
    }

    fn deadline(&self, stream: &Stream) -> Millis {
        match stream.transaction_since {
            None => stream.used_at.plus(self.options.stream_idle_ms),
            Some(since) => stream
                .used_at
                .plus(self.options.transaction_idle_ms)
                .min(since.plus(self.options.transaction_ms_max)),
        }
    }

    fn find(&self, baton: &str) -> Option<usize> {
        let (id, token) = baton.split_once('.')?;
        let (id, token) = (u64::from_str_radix(id, 16).ok()?, u128::from_str_radix(token, 16).ok()?);
        self.open.iter().position(|stream| stream.id == id && stream.token == token)
    }

    fn create(&mut self, now: Millis) -> Stream {
        let id = self.next_id;
        self.next_id += 1;
        Stream { id, used_at: now, ..Stream::alone() }
    }
}

impl Stream {
    /// A stream of one call, which no baton names.
    pub(super) fn alone() -> Self {
        Self {
            id: 0,
            token: 0,
            texts: BTreeMap::new(),
            texts_len: 0,
            session: Session::default(),
            used_at: Millis::ZERO,
            transaction_since: None,
            is_closed: false,
        }
    }

    /// The SQL text that a request names.
    ///
    /// # Errors
    /// `SQL_TEXT_INVALID` when it names none, two, or one that is not stored.
    pub(super) fn sql<'s>(&'s self, text: &'s SqlText<'_>) -> Result<&'s str, SqlFailure> {
        let invalid = |text: String| SqlFailure::new("SQL_TEXT_INVALID", text);
        match (text.sql.as_deref(), text.sql_id) {
            (Some(sql), None) => Ok(sql),
            (None, Some(id)) => self
                .texts
                .get(&id)
                .map(String::as_str)
                .ok_or_else(|| invalid(format!("no SQL text is stored under id {id}"))),
            (None, None) => Err(invalid("one of `sql` and `sql_id` is needed".into())),
            (Some(_), Some(_)) => Err(invalid("only one of `sql` and `sql_id` may be given".into())),
        }
    }

    /// Stores an SQL text.
    ///
    /// # Errors
    /// `SQL_STORE` when the id is taken or the bound is reached.
    pub(super) fn store(&mut self, id: i32, sql: &str) -> Result<(), SqlFailure> {
        let failure = |text: String| Err(SqlFailure::new("SQL_STORE", text));
        if self.texts.contains_key(&id) {
            return failure(format!("an SQL text is already stored under id {id}"));
        }
        if self.texts.len() >= TEXTS_MAX || self.texts_len + sql.len() > SQL_LEN_MAX as usize {
            return failure(format!(
                "a stream stores at most {TEXTS_MAX} SQL texts of {SQL_LEN_MAX} bytes in all"
            ));
        }
        self.texts_len += sql.len();
        self.texts.insert(id, sql.to_owned());
        Ok(())
    }

    /// Forgets a stored text. It is no error when there is none.
    pub(super) fn forget(&mut self, id: i32) {
        if let Some(sql) = self.texts.remove(&id) {
            self.texts_len -= sql.len();
        }
    }
}

/// What a client with an old baton is told.
pub(super) fn stale(options: &SqlRuntimeOptions) -> SqlFailure {
    SqlFailure::new(
        "STREAM_EXPIRED",
        format!(
            "the baton is not the last one of an open stream: streams close after {} ms without a call, and with an \
             open transaction, which is then rolled back, after {} ms or {} ms in all; begin again without a baton",
            options.stream_idle_ms, options.transaction_idle_ms, options.transaction_ms_max
        ),
    )
}

/// Rolls back what is open and takes the caller's settings off the connection.
///
/// # Errors
/// SQLite's.
pub(super) fn end(engine: &Engine) -> Result<(), SqlFailure> {
    let ended = engine.roll_back().and_then(|()| engine.leave_session());
    ended.map(drop).map_err(|error| session_failure(&error))
}

fn log_end(engine: &Engine) {
    if let Err(failure) = end(engine) {
        tracing::error!(%failure, "a stream could not be ended");
    }
}

fn session_failure(error: &rusqlite::Error) -> SqlFailure {
    SqlFailure::new("SQLITE_INTERNAL", format!("the connection could not change between streams: {error}"))
}

fn random_token() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    u128::from_le_bytes(bytes)
}
