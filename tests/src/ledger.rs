//! The ledger: one line per ended operation, synced to disk before the operation counts as ended. The checker believes
//! only this file.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// How many operations may wait for one sync.
const QUEUE_LEN_MAX: usize = 1024;

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The client holds an acknowledgement.
    Acked,
    /// The client was told that it did not run.
    Refused,
    /// Nobody knows.
    Unknown,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The database.
    pub db: String,
    /// The operation's unique id, which is in the row it writes.
    pub op: String,
    /// How it ended.
    pub ending: Ending,
    /// For an acknowledgement: the counter's value that it returned.
    pub n: Option<u64>,
    /// For an acknowledgement: the epoch and the txid of `Holdfast-Position`.
    pub position: Option<(u64, u64)>,
    /// What the client was told.
    pub note: String,
}

type Row = (Entry, oneshot::Sender<()>);

/// Writes the file. Clones append to the same one.
#[derive(Clone, Debug)]
pub struct Ledger {
    queue: SyncSender<Row>,
}

/// Joins the writer after the last [`Ledger`] has gone.
#[derive(Debug)]
pub struct LedgerWriter(JoinHandle<Result<()>>);

impl Ledger {
    /// Starts a new file.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(path: &Path) -> Result<(Self, LedgerWriter)> {
        let file = File::create_new(path).with_context(|| format!("creating `{}`", path.display()))?;
        let (queue, rows) = sync_channel(QUEUE_LEN_MAX);
        let writer =
            std::thread::Builder::new().name("ledger".into()).spawn(move || write_rows(file, &rows))?;
        Ok((Self { queue }, LedgerWriter(writer)))
    }

    /// Writes a line and waits until it is synced.
    ///
    /// # Errors
    /// When the writer has failed; [`LedgerWriter::close`] says why.
    pub async fn write(&self, entry: Entry) -> Result<()> {
        let (synced, done) = oneshot::channel();
        let queue = self.queue.clone();
        // The queue is longer than the number of workers, so that this hardly ever blocks; where it does, the disk
        // is what all wait for.
        queue.send((entry, synced)).ok().context("the ledger's writer has ended")?;
        done.await.context("the ledger's writer has ended")
    }
}

impl LedgerWriter {
    /// Waits for the end of the file.
    ///
    /// # Errors
    /// What the disk said.
    pub fn close(self) -> Result<()> {
        self.0.join().map_err(|_| anyhow::anyhow!("the ledger's writer panicked"))?
    }
}

fn write_rows(mut file: File, rows: &Receiver<Row>) -> Result<()> {
    while let Ok(first) = rows.recv() {
        let batch: Vec<Row> = std::iter::once(first).chain(rows.try_iter().take(QUEUE_LEN_MAX)).collect();
        let mut lines = Vec::new();
        for (entry, _) in &batch {
            serde_json::to_writer(&mut lines, entry)?;
            lines.push(b'\n');
        }
        file.write_all(&lines)?;
        file.sync_data()?;
        for (_, synced) in batch {
            // A worker that was stopped no longer waits.
            let _ = synced.send(());
        }
    }
    Ok(())
}

/// Reads a ledger back.
///
/// # Errors
/// When a line is torn or is none of ours: the file was synced line by line, so that none may be.
pub fn read(path: &Path) -> Result<Vec<Entry>> {
    let file = File::open(path).with_context(|| format!("opening `{}`", path.display()))?;
    BufReader::new(file)
        .lines()
        .enumerate()
        .map(|(number, line)| {
            serde_json::from_str(&line?).with_context(|| format!("line {} of the ledger", number + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_was_written_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger");
        let (ledger, writer) = Ledger::create(&path).unwrap();
        let entry = |n: u64| Entry {
            db: "c".into(),
            op: format!("op-{n}"),
            ending: Ending::Acked,
            n: Some(n),
            position: Some((1, n)),
            note: String::new(),
        };
        let writes = (0..100).map(|n| {
            let ledger = ledger.clone();
            tokio::spawn(async move { ledger.write(entry(n)).await })
        });
        for write in writes.collect::<Vec<_>>() {
            write.await.unwrap().unwrap();
        }
        assert_eq!(read(&path).unwrap().len(), 100, "synced before the write has returned");
        drop(ledger);
        writer.close().unwrap();
        let mut found = read(&path).unwrap();
        found.sort_by_key(|entry| entry.n);
        assert_eq!(found, (0..100).map(entry).collect::<Vec<_>>());
        assert!(Ledger::create(&path).is_err(), "a ledger is never overwritten");
    }
}
