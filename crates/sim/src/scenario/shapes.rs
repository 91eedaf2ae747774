//! What each scenario makes of a plan.

use super::{Fault, Plan, Scenario, WALL_OFF_IN_BOUNDS_MS};
use crate::rng::Rng;
use crate::weather::Weather;

impl Plan {
    pub(super) fn shape(&mut self, scenario: Scenario) {
        match scenario {
            Scenario::Calm => {
                self.may_fence = false;
                self.weather.list_stale_ms_max = 0;
            }
            Scenario::Crashes => {
                self.faults = vec![(Fault::Crash, 1)];
                self.step_crash_ppm = 150;
            }
            Scenario::Pauses => self.faults = vec![(Fault::Pause, 4), (Fault::Crash, 1)],
            Scenario::Lossy => {
                self.weather = stormy();
                self.faults = vec![(Fault::Crash, 1), (Fault::Sleep, 2)];
            }
            Scenario::ShortOutages => {
                self.may_fence = false;
                self.faults = vec![(Fault::Outage, 1)];
                self.fault_every_ms_max = 12_000;
            }
            Scenario::LongOutages => {
                self.faults = vec![(Fault::Outage, 3), (Fault::Crash, 1), (Fault::Sleep, 1)];
                self.outage_ms_max = 14_000;
                self.fault_every_ms_max = 15_000;
            }
            Scenario::Skew => {
                self.wall_off_ms_max = WALL_OFF_IN_BOUNDS_MS;
                self.faults = vec![(Fault::ClockStep, 2), (Fault::Pause, 2), (Fault::Crash, 1)];
            }
            Scenario::BeyondSkew => {
                self.wall_off_ms_max = 30_000;
                self.clocks_in_bounds = false;
                self.faults =
                    vec![(Fault::ClockStep, 3), (Fault::Pause, 3), (Fault::Crash, 3), (Fault::EraseLease, 1)];
                self.weather.late = 5;
            }
            Scenario::Contested => {
                self.wall_off_ms_max = 30_000;
                self.clocks_in_bounds = false;
                self.cells = 1;
                self.nodes = 4;
                self.clients = 8;
                self.strays = 700;
                self.faults = vec![(Fault::ClockStep, 4), (Fault::Release, 1), (Fault::Crash, 1)];
                self.fault_every_ms_max = 900;
                self.weather.request_lost = 120;
            }
            Scenario::Drains => {
                self.faults = vec![(Fault::Drain, 1), (Fault::Release, 3), (Fault::Sleep, 3)];
                self.fault_every_ms_max = 3_000;
                self.weather.answer_lost = 5;
            }
            Scenario::SameName => {
                self.has_twins = true;
                self.faults = vec![(Fault::Pause, 3), (Fault::Crash, 2)];
            }
            Scenario::Purges => {
                self.faults =
                    vec![(Fault::Purge, 3), (Fault::Sleep, 2), (Fault::Release, 1), (Fault::Crash, 1)];
                self.weather = Weather { late: 10, ..stormy() };
                self.fault_every_ms_max = 4_000;
            }
            Scenario::Everything => self.shape_everything(),
            Scenario::Retirement => {
                self.retires_at_once = true;
                self.wall_off_ms_max = 30_000;
                self.clocks_in_bounds = false;
                self.cells = 1;
                self.nodes = 3;
                self.clients = 5;
                self.strays = 500;
                self.faults = vec![
                    (Fault::ClockStep, 4),
                    (Fault::Pause, 1),
                    (Fault::Sleep, 1),
                    (Fault::Release, 1),
                    (Fault::Crash, 1),
                ];
                self.fault_every_ms_max = 1_200;
                self.weather.request_lost = 60;
                self.weather.slow = 15;
                self.weather.list_stale_ms_max = 8_000;
            }
            Scenario::EnsembleBasics => {
                self.faults = vec![(Fault::BreakLinks, 2), (Fault::Sleep, 1)];
                self.weather.list_stale_ms_max = 0;
                self.may_fence = false;
            }
            Scenario::FollowerCrashes => {
                self.faults = vec![(Fault::CrashTogether, 3), (Fault::KillFollower, 2), (Fault::Crash, 2)];
                self.fault_every_ms_max = 4_000;
                self.step_crash_ppm = 60;
            }
            Scenario::PowerCuts => {
                self.faults = vec![(Fault::CutPower, 2), (Fault::CutAllPower, 2), (Fault::Crash, 2)];
                self.fault_every_ms_max = 4_000;
                self.fsync_ms_max = 60;
            }
            Scenario::EnsembleMoves => {
                self.faults = vec![
                    (Fault::KillFollower, 4),
                    (Fault::DrainFollower, 3),
                    (Fault::BreakLinks, 3),
                    (Fault::Crash, 3),
                ];
                self.fault_every_ms_max = 1_800;
                self.fsync_ms_max = 40;
                self.link_slow = 15;
                self.followers = self.followers.max(3);
                self.step_crash_ppm = 100;
            }
            Scenario::RecordFaults => {
                self.faults = vec![(Fault::KillFollower, 3), (Fault::BreakLinks, 2), (Fault::Crash, 1)];
                self.fault_every_ms_max = 2_500;
                self.weather = Weather { answer_lost: 60, late: 40, ambiguous: 60, ..stormy() };
                self.weather.late_ms_max = 15_000;
            }
            Scenario::SlowDisks => {
                self.faults = vec![
                    (Fault::SlowDisk, 5),
                    (Fault::BreakLinks, 3),
                    (Fault::CutAllPower, 2),
                    (Fault::CutPower, 1),
                ];
                self.fault_every_ms_max = 2_500;
                self.link_slow = 20;
            }
            Scenario::SlowMembers => {
                self.faults = vec![(Fault::SlowMember, 4), (Fault::SlowAll, 3), (Fault::Crash, 1)];
                self.fault_every_ms_max = 9_000;
                self.faults_until_ms += 30_000;
                self.followers = self.followers.max(3);
                self.fsync_ms_max = 3;
            }
            Scenario::Zombies => {
                self.faults = vec![(Fault::Pause, 6), (Fault::BreakLinks, 2), (Fault::ClockStep, 1)];
                self.fault_every_ms_max = 4_000;
                self.wall_off_ms_max = 30_000;
                self.clocks_in_bounds = false;
            }
            Scenario::DiskLoss => {
                self.faults = vec![
                    (Fault::LoseDisk, 3),
                    (Fault::LoseSegment, 1),
                    (Fault::BreakLinks, 2),
                    (Fault::Crash, 3),
                ];
                self.fault_every_ms_max = 4_000;
            }
            Scenario::AllDisksLost => {
                self.faults = vec![(Fault::LoseAllDisks, 2), (Fault::Crash, 2), (Fault::BreakLinks, 1)];
                self.fault_every_ms_max = 14_000;
            }
            Scenario::DeclaredLoss => {
                self.faults = vec![
                    (Fault::TakeAllAway, 3),
                    (Fault::LoseAllDisks, 1),
                    (Fault::DeclareLoss, 6),
                    (Fault::Crash, 1),
                    (Fault::BreakLinks, 1),
                ];
                self.fault_every_ms_max = 3_500;
                self.declares_loss = true;
            }
            Scenario::EnsembleDrains => {
                self.faults = vec![
                    (Fault::Drain, 3),
                    (Fault::DrainFollower, 2),
                    (Fault::Release, 3),
                    (Fault::Sleep, 3),
                    (Fault::Purge, 1),
                ];
                self.fault_every_ms_max = 2_500;
                self.weather.answer_lost = 5;
            }
            Scenario::FailedProofs => {
                self.faults = vec![
                    (Fault::Outage, 4),
                    (Fault::SlowDisk, 2),
                    (Fault::KillFollower, 3),
                    (Fault::Sleep, 1),
                ];
                self.outage_ms_max = 7_500;
                self.fault_every_ms_max = 3_500;
            }
            Scenario::RacingRecoverers => {
                self.nodes = 4;
                self.strays = 500;
                self.sweep_every_ms = 2_500;
                self.faults = vec![(Fault::Crash, 5), (Fault::Pause, 2), (Fault::KillFollower, 1)];
                self.fault_every_ms_max = 3_000;
                self.step_crash_ppm = 250;
                self.weather.slow = 25;
            }
            Scenario::FullDisks => {
                self.faults = vec![(Fault::FullDisk, 5), (Fault::Crash, 2), (Fault::BreakLinks, 1)];
                self.fault_every_ms_max = 3_000;
            }
            Scenario::Bundles => {
                self.faults = vec![
                    (Fault::Crash, 3),
                    (Fault::Pause, 3),
                    (Fault::CrashTogether, 1),
                    (Fault::KillFollower, 2),
                    (Fault::DrainFollower, 1),
                    (Fault::Drain, 1),
                    (Fault::Release, 1),
                    (Fault::Sleep, 1),
                    (Fault::BreakLinks, 1),
                    (Fault::ClockStep, 2),
                ];
                self.weather = stormy();
                self.fault_every_ms_max = 4_000;
                self.step_crash_ppm = 100;
                // Live owners are recovered, and go on with their bundles meanwhile.
                self.wall_off_ms_max = 30_000;
                self.clocks_in_bounds = false;
                // So that a session changes its mind when few cells are dirty.
                self.cell_weight = 32;
                self.cells = self.cells.max(3);
                self.pace_ms = self.pace_ms.min(900);
            }
            Scenario::Alarms => self.shape_alarms(),
            Scenario::PoisonAlarms => {
                self.shape_alarms();
                self.poisoned = 250;
                self.step_crash_ppm = 0;
                self.faults = vec![
                    (Fault::Crash, 1),
                    (Fault::Pause, 1),
                    (Fault::Drain, 1),
                    (Fault::Release, 2),
                    (Fault::Sleep, 2),
                    (Fault::ClockStep, 1),
                ];
            }
            Scenario::EnsembleAlarms => {
                self.shape_alarms();
                self.faults.extend([
                    (Fault::CrashTogether, 2),
                    (Fault::KillFollower, 2),
                    (Fault::BreakLinks, 1),
                ]);
            }
            Scenario::LostRecords => {
                self.faults = vec![
                    (Fault::HarmOwnerRecord, 4),
                    (Fault::Crash, 2),
                    (Fault::Pause, 2),
                    (Fault::Sleep, 2),
                    (Fault::Release, 2),
                    (Fault::KillFollower, 1),
                    (Fault::BreakLinks, 1),
                ];
                self.weather = Weather { late_ms_max: 8_000, ..stormy() };
                self.fault_every_ms_max = 2_500;
                self.cells = self.cells.max(3);
                self.wall_off_ms_max = WALL_OFF_IN_BOUNDS_MS;
            }
            Scenario::EnsembleEverything => self.shape_ensemble_everything(),
            Scenario::EnsembleBeyondSkew => {
                self.shape_ensemble_everything();
                self.faults.push((Fault::EraseLease, 1));
                self.faults.push((Fault::ClockStep, 4));
                self.wall_off_ms_max = 30_000;
                self.clocks_in_bounds = false;
                self.has_twins = self.nodes > 2;
                self.strays = 400;
            }
        }
    }

    fn shape_alarms(&mut self) {
        self.has_alarms = true;
        self.weather = Weather { late: 20, answer_lost: 30, ..stormy() };
        self.wall_off_ms_max = WALL_OFF_IN_BOUNDS_MS;
        self.step_crash_ppm = 400;
        self.fault_every_ms_max = 4_000;
        self.outage_ms_max = 6_000;
        self.faults = vec![
            (Fault::Crash, 4),
            (Fault::Pause, 2),
            (Fault::Outage, 2),
            (Fault::Drain, 1),
            (Fault::Release, 2),
            (Fault::Sleep, 2),
            (Fault::ClockStep, 2),
        ];
    }

    fn shape_everything(&mut self) {
        self.weather = stormy();
        self.wall_off_ms_max = WALL_OFF_IN_BOUNDS_MS;
        self.step_crash_ppm = 30;
        self.has_twins = self.nodes > 2;
        self.fault_every_ms_max = 8_000;
        self.outage_ms_max = 8_000;
        self.faults = vec![
            (Fault::Crash, 3),
            (Fault::Pause, 4),
            (Fault::Outage, 2),
            (Fault::Drain, 1),
            (Fault::Release, 2),
            (Fault::Sleep, 2),
            (Fault::Purge, 1),
            (Fault::ClockStep, 2),
        ];
    }
}

impl Plan {
    pub(super) fn shape_ensembles(&mut self, rng: &mut Rng) {
        self.followers = 1 + rng.index(4);
        self.own_host_allowed = rng.chance(500);
        self.cells = if rng.chance(250) { 1 } else { 1 + rng.byte() % 8 };
        self.clients = 3 + rng.index(6);
        self.pace_ms = rng.within(300, 2_500);
        self.fsync_ms_max = rng.within(2, 25);
        self.sweep_every_ms = rng.within(3_000, 12_000);
        self.has_adversary = rng.chance(500);
        self.faults_until_ms = rng.within(20_000, 45_000);
        if rng.chance(333) {
            self.cell_weight = 64;
        }
    }

    fn shape_ensemble_everything(&mut self) {
        self.weather = stormy();
        self.wall_off_ms_max = WALL_OFF_IN_BOUNDS_MS;
        self.step_crash_ppm = 40;
        self.fault_every_ms_max = 3_000;
        self.outage_ms_max = 6_000;
        self.link_slow = 10;
        self.faults = vec![
            (Fault::Crash, 3),
            (Fault::Pause, 3),
            (Fault::Outage, 2),
            (Fault::Drain, 2),
            (Fault::Release, 2),
            (Fault::Sleep, 2),
            (Fault::Purge, 1),
            (Fault::ClockStep, 1),
            (Fault::KillFollower, 3),
            (Fault::CutPower, 2),
            (Fault::CutAllPower, 1),
            (Fault::CrashTogether, 2),
            (Fault::PauseFollower, 2),
            (Fault::DrainFollower, 2),
            (Fault::LoseDisk, 1),
            (Fault::LoseSegment, 1),
            (Fault::SlowDisk, 2),
            (Fault::FullDisk, 1),
            (Fault::BreakLinks, 3),
        ];
    }
}

fn stormy() -> Weather {
    Weather {
        slow: 20,
        request_lost: 10,
        answer_lost: 15,
        late: 8,
        ambiguous: 20,
        list_stale_ms_max: 5_000,
        message_lost: 5,
        ..Weather::CALM
    }
}
