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
    // A zombie has no command line.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
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
        let members = Command::new("ps")
            .args(["-o", "stat=", "-g", &group.to_string()])
            .stderr(Stdio::null())
            .output()?;
        let text = String::from_utf8_lossy(&members.stdout).into_owned();
        let running = text.lines().filter(|stat| !stat.trim_start().starts_with('Z')).count();
        ensure!(running == 0, "{running} run: {text}");
        Ok(())
    })
    .await
    .unwrap();
    assert!(!is_alive(child));
}
