//! The runner on programs that are always there.

use std::process::{Command, Stdio};

use super::*;

/// A stand-in for a program: `sh` under a name of its own, in a directory of its own.
fn spec(dir: &Path, script: &str) -> ProcessSpec {
    let program = dir.join("program");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    let mut permissions = std::fs::metadata(&program).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(&program, permissions).unwrap();
    ProcessSpec::new("p", program.to_str().unwrap(), dir)
}

fn is_alive(pid: u32) -> bool {
    // By its state, not by its command line: that is empty for a moment while a shell turns into another program.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
}

#[tokio::test]
async fn a_ready_file_tells_addresses_and_an_early_end_is_told_with_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let warden = Warden::start().unwrap();
    let script = r#"while [ "$1" != --ready-file ]; do shift; done
        echo '{"admin": "127.0.0.1:7"}' > "$2"; exec sleep 60"#;
    let mut process = Process::spawn(spec(dir.path(), script), &warden).unwrap();
    let address = process.ready_address("admin", Duration::from_secs(10)).await.unwrap();
    assert_eq!(address.port(), 7);
    assert!(process.exit_status().unwrap().is_none());
    process.kill().unwrap();
    assert!(Process::was_killed(process.exit_status().unwrap().unwrap()));

    let broken = spec(dir.path(), "echo the disk is gone; exit 4").life(1);
    let mut process = Process::spawn(broken, &warden).unwrap();
    let error = process.ready_address("admin", Duration::from_secs(10)).await.unwrap_err();
    let error = format!("{error:#}");
    assert!(error.contains("exit status: 4") && error.contains("the disk is gone"), "{error}");
}

#[tokio::test]
async fn signals_reach_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let warden = Warden::start().unwrap();
    let mut process = Process::spawn(spec(dir.path(), "exec sleep 60"), &warden).unwrap();
    process.pause().unwrap();
    let stopped = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") T ");
    let id = process.id();
    wait::until("the stop", Duration::from_secs(5), async || {
        ensure!(stopped(id), "it runs");
        Ok(())
    })
    .await
    .unwrap();
    process.resume().unwrap();
    process.terminate().unwrap();
    let status = process.wait_exit(Duration::from_secs(5)).await.unwrap();
    assert!(!Process::was_killed(status) && !status.success(), "{status}");
}

#[tokio::test]
async fn children_die_with_a_test_that_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let warden = Warden::start().unwrap();
    let process = Process::spawn(spec(dir.path(), "sleep 61 & exec sleep 62"), &warden).unwrap();
    let (child, group) = (process.id(), warden.group());
    assert!(is_alive(child));
    // The pipe closes without any of our destructors, as when the test is killed.
    std::mem::forget(process);
    drop(warden);
    wait::until("the end of the group", Duration::from_secs(5), async || {
        let all = Command::new("ps").args(["-eo", "pgid=,stat="]).stderr(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&all.stdout).into_owned();
        let group = group.to_string();
        let is_running = |line: &&str| {
            let mut words = line.split_whitespace();
            words.next() == Some(&group) && !words.next().is_some_and(|stat| stat.starts_with('Z'))
        };
        let running = text.lines().filter(is_running).count();
        ensure!(all.status.success() && running == 0, "{running} run");
        Ok(())
    })
    .await
    .unwrap();
    assert!(!is_alive(child));
}

#[tokio::test]
async fn a_process_may_have_a_disk_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let warden = Warden::start().unwrap();
    let mut spec = spec(dir.path(), "head -c 9000000 /dev/zero > \"$1/big\"; exec sleep 60");
    spec.args = vec![disk.display().to_string()];
    spec.prepare = Some(format!("mount -t tmpfs -o size=4m none '{}'", disk.display()));
    let process = Process::spawn(spec, &warden).unwrap();
    let seen = PathBuf::from(format!("/proc/{}/root{}/big", process.id(), disk.display()));
    wait::until("the disk to be full", Duration::from_secs(10), async || {
        let log = process.log();
        ensure!(log.contains("No space left"), "{log}");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(std::fs::metadata(&seen).unwrap().len(), 4 << 20);
    assert!(!disk.join("big").exists(), "nobody else sees the disk");
}
