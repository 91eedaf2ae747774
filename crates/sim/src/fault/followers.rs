//! What befalls followers, their disks and their links.

use holdfast_types::Incarnation;

use crate::checkers::slowness::Pace;
use crate::event::Event;
use crate::follower::FollowerInput;
use crate::journal::Disk;
use crate::scenario::Fault;
use crate::world::World;

/// A disk that becomes slow again within this time need not have looked well to anybody.
const SLOW_AGAIN_MS: u64 = 5_000;
/// How long a follower is away that is given up.
const AWAY_MS: (u64, u64) = (6_000, 25_000);
/// Time for sessions to leave a draining follower.
const DRAIN_MS: (u64, u64) = (1_000, 6_000);

impl World {
    pub(super) fn strike_followers(&mut self, fault: Fault, node: usize, follower: usize) {
        match fault {
            Fault::KillFollower => self.restart_follower(follower, |_| {}),
            Fault::CutPower => self.cut_power(follower),
            Fault::CutAllPower => {
                (0..self.followers.len()).for_each(|follower| self.cut_power(follower));
                if self.rng.chance(500) {
                    self.crash(node);
                }
            }
            Fault::CrashTogether => self.crash_together(node),
            Fault::PauseFollower => self.pause_follower(follower),
            Fault::DrainFollower => self.drain_follower(follower),
            Fault::LoseDisk => self.lose_disk(follower),
            Fault::LoseAllDisks => {
                self.crash(node);
                (0..self.followers.len()).for_each(|follower| self.lose_disk(follower));
            }
            Fault::TakeAllAway => {
                self.crash(node);
                (0..self.followers.len()).for_each(|follower| self.take_away(follower));
            }
            Fault::LoseSegment => {
                let mut rng = self.rng.clone();
                self.restart_follower(follower, |disk| disk.lose_segment(&mut rng));
                self.rng.bits();
            }
            Fault::SlowDisk => {
                let span = self.rng.within(200, 4_000);
                self.slow_down(follower, span);
            }
            Fault::SlowMember => {
                let span = self.rng.within(1_000, 14_000);
                self.slow_down(follower, span);
            }
            Fault::SlowAll => {
                let span = self.rng.within(1_000, 25_000);
                (0..self.followers.len()).for_each(|follower| self.slow_down(follower, span));
            }
            Fault::FullDisk => {
                let span = self.rng.within(500, 6_000);
                self.followers[follower].full_until_ms = self.now + span;
            }
            Fault::BreakLinks => self.break_connections(|link| link.follower == follower),
            other => unreachable!("{other:?} is none of a follower"),
        }
    }

    /// Ends a follower's process, does something to its disk, and has it come back.
    fn restart_follower(&mut self, index: usize, harm: impl FnOnce(&mut Disk)) {
        self.end_follower(index);
        harm(&mut self.followers[index].disk);
        let delay = self.rng.within(20, 4_000);
        self.after(delay, Event::StartFollower(index));
    }

    fn cut_power(&mut self, index: usize) {
        let mut rng = self.rng.clone();
        self.restart_follower(index, |disk| disk.cut_power(&mut rng));
        self.rng.bits();
    }

    fn lose_disk(&mut self, index: usize) {
        let incarnation = Incarnation::from_bits(self.rng.wide_bits());
        self.restart_follower(index, |disk| *disk = Disk::new(incarnation));
    }

    fn slow_down(&mut self, index: usize, span_ms: u64) {
        let follower = &mut self.followers[index];
        let Pace { begun_ms, since_ms, until_ms } = &mut follower.pace;
        if *until_ms == 0 || self.now > *until_ms + SLOW_AGAIN_MS {
            *begun_ms = self.now;
        }
        if self.now > *until_ms {
            *since_ms = self.now;
        }
        *until_ms = (*until_ms).max(self.now + span_ms);
    }

    /// Away for so long that somebody may give it up; mostly it comes back as it was.
    fn take_away(&mut self, index: usize) {
        self.end_follower(index);
        let (fate, bits) = (self.rng.below(10), self.rng.wide_bits());
        let mut rng = self.rng.clone();
        let disk = &mut self.followers[index].disk;
        match fate {
            0..2 => *disk = Disk::new(Incarnation::from_bits(bits)),
            2..4 => disk.lose_segment(&mut rng),
            _ => {}
        }
        self.rng.bits();
        let (low, high) = AWAY_MS;
        let delay = self.rng.within(low, high);
        self.after(delay, Event::StartFollower(index));
    }

    /// The owner, some followers, or all of them; who is back first is up to the seed.
    fn crash_together(&mut self, node: usize) {
        let hit = self.rng.bits();
        for index in 0..self.followers.len() {
            if hit >> index & 1 == 1 {
                self.restart_follower(index, |_| {});
            }
        }
        if hit >> 32 & 3 != 0 {
            self.crash(node);
        }
    }

    fn pause_follower(&mut self, index: usize) {
        let span =
            if self.rng.chance(300) { self.rng.within(2_000, 12_000) } else { self.rng.within(20, 900) };
        let follower = &mut self.followers[index];
        if follower.process.is_some() && !follower.is_paused {
            follower.is_paused = true;
            self.after(span, Event::ContinueFollower(index));
        }
    }

    pub(crate) fn on_follower_continue(&mut self, index: usize) {
        let follower = &mut self.followers[index];
        follower.is_paused = false;
        for event in std::mem::take(&mut follower.deferred) {
            let delay = self.rng.below(3);
            self.after(delay, event);
        }
    }

    fn drain_follower(&mut self, index: usize) {
        let (low, high) = DRAIN_MS;
        let span = self.rng.within(low, high);
        let Some(process) = self.followers[index].process.as_mut() else { return };
        if !process.is_draining {
            process.is_draining = true;
            let life = process.life;
            self.after(span, Event::Follower(index, Some(life), FollowerInput::DrainEnd));
        }
    }
}
