//! Opening a cell's database: settings, limits, callbacks. A WAL or journal left beside it is refused: its end is
//! unknown, and the owner restores instead.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_types::Txid;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::shared::Shared;
use super::{Engine, policy};
use crate::ffi;
use crate::options::{
    COLUMNS_MAX, COMPOUND_SELECT_MAX, EXPRESSION_DEPTH_MAX, EngineOptions, PARAMETERS_MAX, PATTERN_LEN_MAX,
    SQL_LEN_MAX, TRIGGER_DEPTH_MAX, VALUE_LEN_MAX,
};
use crate::paged::PageSource;

/// Virtual machine instructions between two looks at the clock. One of them may work on megabytes, so not many.
const PROGRESS_OPS: i32 = 1_000;
/// Page size of a new cell.
const PAGE_SIZE_DEFAULT: u32 = 4_096;

/// Why a database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A WAL or journal lies beside the file, so that its content is not known to be at the position. Disposition: corrupt; discard and restore.
    #[error("`{0}` is left from an unclean end: discard the local files and restore")]
    Leftover(PathBuf),
    /// Position zero names an empty database and the file is not. Disposition: bug.
    #[error(
        "`{path}` has {len} bytes, but position 0 is the empty database: discard the file or name its position"
    )]
    NotEmpty {
        /// The file.
        path: PathBuf,
        /// Its length.
        len: u64,
    },
    /// A position was named and the file is missing. Disposition: reread; restore.
    #[error("`{path}` is missing or empty, but position {position} was named: restore it")]
    Missing {
        /// The file.
        path: PathBuf,
        /// The position.
        position: Txid,
    },
    /// The file did not enter WAL mode. Disposition: corrupt.
    #[error("`{path}` stays in journal mode `{mode}`")]
    JournalMode {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: String,
    },
    /// The file system failed. Disposition: retry.
    #[error("cannot look at `{path}`: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// A page of the file could not be fetched. Disposition: retry; discard the file.
    #[error("cannot open `{path}`: {reason}")]
    Page {
        /// The file.
        path: PathBuf,
        /// Which page, and why not.
        reason: String,
    },
    /// SQLite failed. Disposition: corrupt; restore.
    #[error("cannot open `{path}`: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The error.
        source: rusqlite::Error,
    },
}

impl Engine {
    /// Opens the database that holds exactly the transactions up to `position`, or creates an empty one at position 0.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(path: &Path, position: Txid, options: &EngineOptions) -> Result<Self, OpenError> {
        Self::open_by(path, position, options, None)
    }

    /// As [`Engine::open`], over a file whose missing pages come from a source. The file has its full length.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::Page`] where a page could not be had.
    pub fn open_paged(
        path: &Path,
        position: Txid,
        options: &EngineOptions,
        pages: Arc<dyn PageSource>,
    ) -> Result<Self, OpenError> {
        Self::open_by(path, position, options, Some(pages))
    }

    fn open_by(
        path: &Path,
        position: Txid,
        options: &EngineOptions,
        pages: Option<Arc<dyn PageSource>>,
    ) -> Result<Self, OpenError> {
        ffi::configure_process(&options.spool_dir);
        refuse_leftovers(path)?;
        refuse_other_content(path, position)?;
        let shared = Shared::new();
        let failed = |source| match shared.take_page_failure() {
            Some(reason) => OpenError::Page { path: path.into(), reason },
            None => OpenError::Sqlite { path: path.into(), source },
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let connection = match pages {
            None => Connection::open_with_flags(path, flags),
            Some(pages) => {
                let (shared, patience) = (Arc::clone(&shared), options.statement_budget);
                ffi::open_paged(path, flags, ffi::Source { pages, shared, patience })
            }
        };
        let mut connection = connection.map_err(failed)?;
        let mode = configure(&connection, position, options).map_err(failed)?;
        if mode != "wal" {
            return Err(OpenError::JournalMode { path: path.into(), mode });
        }
        install_hooks(&mut connection, &shared).map_err(failed)?;
        let mut engine = Self {
            kept: RefCell::default(),
            connection,
            shared: Arc::clone(&shared),
            options: options.clone(),
            path: path.into(),
            position,
            page_size: 0,
            captured_frames: 0,
            cuts: VecDeque::new(),
            commit_pages: 0,
            wal: None,
            fault: None,
            is_object_lost: Cell::new(false),
            alarm: super::object::AlarmContext::default(),
            may_have_wish: true,
        };
        engine.read_sizes().map_err(failed)?;
        engine.shared.set_fresh(position == Txid::ZERO);
        engine.shared.set_system(false);
        Ok(engine)
    }

    /// Learns page size and page count, and bounds the latter.
    pub(super) fn read_sizes(&mut self) -> rusqlite::Result<()> {
        let (page_size, pages) = self.system(|connection| {
            let read = |sql| connection.query_row(sql, [], |row| row.get::<_, u32>(0));
            Ok::<_, rusqlite::Error>((read("PRAGMA page_size")?, read("PRAGMA page_count")?))
        })?;
        self.page_size = page_size;
        self.commit_pages = if self.position == Txid::ZERO { 0 } else { pages };
        if let Some(bytes) = self.options.db_bytes_max {
            let pages = (bytes / u64::from(page_size)).clamp(1, u64::from(u32::MAX) - 2);
            self.system(|connection| {
                connection.query_row(&format!("PRAGMA max_page_count={pages}"), [], |_| Ok(()))
            })?;
        }
        Ok(())
    }

    /// Gives a database that was never written another page size. A no-op once something was.
    pub(super) fn choose_page_size(&mut self, bytes: u32) -> rusqlite::Result<()> {
        if !self.shared.is_fresh() || bytes == self.page_size || self.in_transaction() {
            return Ok(());
        }
        // SQLite changes the page size of a file only by VACUUM, and never in WAL mode.
        let changed = self.system(|connection| {
            connection.execute_batch(&format!(
                "PRAGMA journal_mode=DELETE; PRAGMA page_size={bytes}; VACUUM; PRAGMA journal_mode=WAL;"
            ))?;
            connection.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0))
        });
        match changed {
            Ok(mode) if mode == "wal" => {}
            // Outside of WAL mode commits would not be seen: this engine must not be used any more.
            Ok(_) => {
                self.fault = Some(rusqlite::ffi::SQLITE_IOERR);
                return Ok(());
            }
            Err(error) => {
                self.fault = Some(super::fault_code(&error));
                return Err(error);
            }
        }
        self.shared.set_commit_uncounted(false);
        self.shared.set_wal_frames(0);
        self.read_sizes()
    }
}

/// The path of a file that SQLite keeps beside the database.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn len_of(path: &Path) -> Result<u64, OpenError> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(source) => Err(OpenError::Io { path: path.into(), source }),
    }
}

fn refuse_leftovers(path: &Path) -> Result<(), OpenError> {
    for suffix in ["-wal", "-journal"] {
        let leftover = beside(path, suffix);
        if len_of(&leftover)? > 0 {
            return Err(OpenError::Leftover(leftover));
        }
    }
    Ok(())
}

fn refuse_other_content(path: &Path, position: Txid) -> Result<(), OpenError> {
    match (len_of(path)?, position) {
        (0, Txid::ZERO) => Ok(()),
        (0, position) => Err(OpenError::Missing { path: path.into(), position }),
        (len, Txid::ZERO) => Err(OpenError::NotEmpty { path: path.into(), len }),
        _ => Ok(()),
    }
}

/// Settings, in the order that SQLite needs. Answers the journal mode.
fn configure(connection: &Connection, position: Txid, options: &EngineOptions) -> rusqlite::Result<String> {
    for (config, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
        // On in libSQL's builds too, so that clients find what they know.
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true),
        // Whatever happens to a dirty engine, closing it must not move uncaptured frames into the file.
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
    ] {
        connection.set_db_config(config, value)?;
    }
    set_limits(connection)?;
    ffi::install_functions(connection)?;
    connection.busy_timeout(std::time::Duration::ZERO)?;
    if position == Txid::ZERO {
        connection.execute_batch(&format!("PRAGMA page_size={PAGE_SIZE_DEFAULT}"))?;
    }
    connection.execute_batch(&format!(
        "PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-{}; PRAGMA synchronous=OFF; PRAGMA mmap_size=0;",
        options.page_cache_kib.max(16)
    ))?;
    let mode = connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get::<_, String>(0))?;
    // Reading takes the lock of the file, for good.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(mode.to_ascii_lowercase())
}

fn set_limits(connection: &Connection) -> rusqlite::Result<()> {
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, VALUE_LEN_MAX),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, SQL_LEN_MAX),
        (Limit::SQLITE_LIMIT_COLUMN, COLUMNS_MAX),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, EXPRESSION_DEPTH_MAX),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, COMPOUND_SELECT_MAX),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, PARAMETERS_MAX),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_LEN_MAX),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, TRIGGER_DEPTH_MAX),
        // VACUUM attaches its temporary database, so not zero; the authorizer refuses every other.
        (Limit::SQLITE_LIMIT_ATTACHED, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, i32::try_from(value).expect("limits are small"))?;
    }
    Ok(())
}

fn install_hooks(connection: &mut Connection, shared: &Arc<Shared>) -> rusqlite::Result<()> {
    let state = Arc::clone(shared);
    connection.commit_hook(Some(move || {
        state.set_commit_uncounted(true);
        false
    }))?;
    let state = Arc::clone(shared);
    connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, frames: i32| {
        state.set_wal_frames(u32::try_from(frames).unwrap_or(0));
        state.set_commit_uncounted(false);
        state.set_fresh(false);
        Ok(())
    }))?;
    let state = Arc::clone(shared);
    connection.progress_handler(PROGRESS_OPS, Some(move || state.is_over_budget()))?;
    let state = Arc::clone(shared);
    connection.authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| {
        policy::authorize(&state, &context)
    }))
}
