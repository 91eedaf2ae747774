//! `bench floor`: what an acknowledged write cannot be cheaper than on this machine: a sync of its disk and round trips
//! over loopback, measured by blocking calls, without any program of ours between. Never anything but a lower bound.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use humantime::parse_duration;
use serde_json::json;

use super::load::{Measured, micros};
use super::{Line, table};
use crate::output::Output;

/// Bytes of one sync: a page of the log with a small transaction.
const BLOCK_LEN: usize = 4 << 10;
/// Blocks of the file. They are written round and round, so that no sync has to allocate or to grow the file.
const BLOCKS: u64 = 4096;
/// Bytes of a round trip, each way: about a small request with its headers.
const MESSAGE_LEN: usize = 200;

/// Options of `bench floor`.
#[derive(Debug, clap::Args)]
pub struct Floor {
    /// Time of each of the two runs.
    #[arg(long, default_value = "2s", value_parser = parse_duration)]
    time: Duration,
    /// A directory on the disk to measure; the file made in it is removed.
    #[arg(long, default_value = ".", value_name = "DIR")]
    dir: PathBuf,
}

impl Floor {
    /// Measures.
    pub async fn run(self, output: Output) -> Result<()> {
        let floors = Floors::measure(&self.dir, self.time).await?;
        let lines = floors.lines();
        output.print(&json!({ "bench": "floor", "lines": lines }), || table(&lines))
    }
}

/// The floors of one run.
#[derive(Debug)]
pub(super) struct Floors {
    sync: Measured,
    round_trip: Measured,
}

impl Floors {
    /// Measures each for so long, the disk in this directory.
    pub(super) async fn measure(dir: &Path, time: Duration) -> Result<Self> {
        let dir = dir.to_path_buf();
        tokio::task::spawn_blocking(move || {
            let sync = syncs(&dir, time)
                .with_context(|| format!("the disk of `{}` cannot be measured", dir.display()))?;
            let round_trip = round_trips(time).context("loopback cannot be measured")?;
            Ok(Self { sync, round_trip })
        })
        .await?
    }

    /// As lines of a result.
    pub(super) fn lines(&self) -> [Line; 2] {
        [
            self.sync.line("fdatasync of 4 KiB into a preallocated file, 1 writer", None),
            self.round_trip.line("loopback TCP round trip of 200 bytes", None),
        ]
    }

    /// The median of a write that crosses to the owner and on to its followers, which sync at the same time: one sync
    /// and two round trips, in microseconds.
    pub(super) fn write_p50_us(&self) -> u64 {
        self.sync.permille_us(500) + 2 * self.round_trip.permille_us(500)
    }
}

/// Writes and syncs one block after the other.
fn syncs(dir: &Path, time: Duration) -> std::io::Result<Measured> {
    let file = tempfile::tempfile_in(dir)?;
    let block = [7; BLOCK_LEN];
    // Written and not merely reserved: the first write into a reserved block changes the file system's own records,
    // and its sync would pay for them too.
    for number in 0..BLOCKS {
        write_block(&file, &block, number)?;
    }
    file.sync_all()?;
    let mut numbers = (0..BLOCKS).cycle();
    repeat(time, || {
        write_block(&file, &block, numbers.next().expect("a cycle does not end"))?;
        file.sync_data()
    })
}

fn write_block(file: &File, block: &[u8; BLOCK_LEN], number: u64) -> std::io::Result<()> {
    file.write_all_at(block, number * BLOCK_LEN as u64)
}

/// Sends a message to a thread that sends it back.
fn round_trips(time: Duration) -> std::io::Result<Measured> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let echo = std::thread::spawn(move || {
        let mut message = [0; MESSAGE_LEN];
        // Ends when the client has closed.
        while server.read_exact(&mut message).is_ok() && server.write_all(&message).is_ok() {}
    });
    let mut message = [7; MESSAGE_LEN];
    let measured = repeat(time, || {
        client.write_all(&message)?;
        client.read_exact(&mut message)
    });
    drop(client);
    echo.join().expect("the echo does not panic");
    measured
}

/// One call after the other, for so long.
fn repeat(time: Duration, mut call: impl FnMut() -> std::io::Result<()>) -> std::io::Result<Measured> {
    let begun = Instant::now();
    let mut latencies_us = Vec::new();
    let mut last = begun;
    while last - begun < time {
        call()?;
        let done = Instant::now();
        latencies_us.push(micros(done - last));
        last = done;
    }
    Ok(Measured::new(latencies_us, last - begun))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_follows_the_other_until_the_time_is_over() {
        let mut calls = 0;
        let pause = Duration::from_millis(2);
        let measured = repeat(pause * 5, || {
            calls += 1;
            std::thread::sleep(pause);
            Ok(())
        });
        let measured = measured.unwrap();
        assert!((1..=5).contains(&calls), "{calls}");
        assert!(measured.permille_us(0) >= 2_000 && measured.per_second() <= 500.0);
        assert!(repeat(pause, || Err(std::io::ErrorKind::StorageFull.into())).is_err());
    }

    #[tokio::test]
    async fn both_floors_are_measured_and_nothing_is_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let floors = Floors::measure(dir.path(), Duration::from_millis(20)).await.unwrap();
        let [sync, round_trip] = floors.lines();
        assert!(sync.p50_us > 0 && round_trip.p50_us > 0);
        assert_eq!(floors.write_p50_us(), sync.p50_us + 2 * round_trip.p50_us);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(Floors::measure(&dir.path().join("absent"), Duration::ZERO).await.is_err());
    }
}
