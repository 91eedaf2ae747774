//! How much happens in a world, and what the followers are called.

use holdfast_core::ensemble::{BUNDLE_CELLS_MIN, FollowerView};
use holdfast_core::log_record::MemberId;
use holdfast_types::{FollowerName, HostId, Incarnation, Millis, Zone};

/// Where a follower stands: its place in the list of all.
pub type At = u8;

/// What the session sees of the followers when it looks: the ones that are there, and the ones of them that drain.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Those that are there.
    pub there: &'static [At],
    /// Those that want to leave.
    pub draining: &'static [At],
}

/// How much happens.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Followers.
    pub followers: At,
    /// What the session sees of them, one after the other.
    pub views: &'static [Seen],
    /// Frames that the session appends.
    pub frames: u8,
    /// Recoverers: each starts at any moment, but once.
    pub recoverers: u8,
    /// Recoverers that die at any moment, after which their lease says so.
    pub deaths: u8,
    /// Whether a person declares the loss of what only followers hold, at any moment after a recovery was blocked.
    pub declares_loss: bool,
    /// Writes of the record whose answer is lost, whether they land, land late, or never.
    pub lost_answers: u8,
    /// Crashes of a follower that lose what was not fsynced, or a part of it.
    pub crashes: u8,
    /// Links that the session gives up.
    pub broken_links: u8,
    /// Disks that are lost: their follower comes back with an empty one.
    pub lost_disks: u8,
    /// Seals that are not answered.
    pub unanswered_seals: u8,
    /// Whether the session brings frames into the bucket, and followers drop them.
    pub uploads: bool,
    /// Dirty cells that the session finds, round after round: with many of them a round is bundled. Where there are rounds each
    /// frame is of a cell of its own, brought into the bucket in any order.
    pub rounds: &'static [u64],
    /// Most frames in one bundle.
    pub bundle_frames: usize,
    /// Whether the session ends in order, at any moment.
    pub closes: bool,
    /// How often time leaps beyond every deadline.
    pub leaps: u8,
    /// Whether the session looks at its clock, and at the followers again and again.
    pub ticks: bool,
}

/// Nothing goes wrong, and nobody recovers.
pub const CALM: Bounds = Bounds {
    followers: 2,
    views: &[Seen { there: &[0, 1], draining: &[] }],
    frames: 1,
    recoverers: 0,
    deaths: 0,
    declares_loss: false,
    lost_answers: 0,
    crashes: 0,
    broken_links: 0,
    lost_disks: 0,
    unanswered_seals: 0,
    uploads: false,
    rounds: &[],
    bundle_frames: 1,
    closes: false,
    leaps: 0,
    ticks: false,
};

/// One follower.
pub const LONE: &[Seen] = &[Seen { there: &[0], draining: &[] }];

/// The session finds a second follower when it has appended to the first.
pub const GROWTH: &[Seen] = &[Seen { there: &[0], draining: &[] }, Seen { there: &[0, 1], draining: &[] }];

/// The only member wants to leave, and another follower is there.
pub const SWAP: &[Seen] = &[Seen { there: &[0], draining: &[] }, Seen { there: &[0, 1], draining: &[0] }];

/// The first of two members wants to leave, and a third follower is there.
pub const MOVE: &[Seen] =
    &[Seen { there: &[0, 1], draining: &[] }, Seen { there: &[0, 1, 2], draining: &[0] }];

/// Three followers, one of which the session does not need at first.
pub const SPARE: &[Seen] = &[Seen { there: &[0, 1, 2], draining: &[] }];

/// Rounds of which the first has the record speak of bundles, and the second makes some.
pub const BUNDLED: &[u64] = &[BUNDLE_CELLS_MIN, BUNDLE_CELLS_MIN];

/// Beyond every timeout, pause and quarantine of the core.
const LEAP_MS: u64 = 400_000;

pub(super) fn time(leaps: u8) -> Millis {
    Millis::new(u64::from(leaps) * LEAP_MS)
}

/// A disk of a follower: its first or a later one.
pub(super) fn member(at: At, disk: u8) -> MemberId {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    MemberId {
        follower: FollowerName::parse(NAMES[usize::from(at)]).expect("a valid name"),
        incarnation: Incarnation::from_bits(u128::from(at) * 16 + u128::from(disk) + 1),
    }
}

/// Whose disk it is.
pub(super) fn place(member: &MemberId) -> (At, u8) {
    let bits = u8::try_from(member.incarnation.bits() - 1).expect("a small number");
    (bits / 16, bits % 16)
}

pub(super) fn view(member: MemberId, draining: bool) -> FollowerView {
    FollowerView {
        member,
        host: HostId::parse("elsewhere").expect("a valid name"),
        zone: Zone::parse("z").expect("a valid name"),
        free_bytes: u64::MAX,
        sessions: 0,
        draining,
        expires_ms: Millis::new(u64::MAX),
    }
}
