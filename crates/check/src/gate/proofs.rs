//! Ensemble proofs are values that only a node log makes, so one is driven to make them.

use holdfast_core::ensemble::{
    EnsembleProof, FollowerView, NodeLog, NodeLogConfig, NodeLogEffect, NodeLogEvent,
};
use holdfast_core::log_record::MemberId;
use holdfast_core::store::Answer;
use holdfast_types::{
    FollowerName, HostId, Incarnation, LogEpoch, LogOffset, Millis, NodeName, SessionId, WriteId, Zone,
};

/// Proofs by their bound.
#[derive(Clone, Debug)]
pub struct Proofs(Vec<EnsembleProof>);

const NOW: Millis = Millis::ZERO;

impl Proofs {
    /// A proof for each of the first frames.
    pub(super) fn made_by_a_node_log(frames: u64) -> Self {
        let member = MemberId {
            follower: FollowerName::parse("a").expect("a valid name"),
            incarnation: Incarnation::from_bits(1),
        };
        let mut log = NodeLog::<u64>::new(NodeLogConfig {
            node: NodeName::parse("n").expect("a valid name"),
            session: SessionId::from_bits(1),
            host: HostId::parse("h").expect("a valid name"),
            zone: Zone::parse("z").expect("a valid name"),
            own_host_allowed: true,
            clock_skew_max_ms: 0,
        });
        let follower = FollowerView {
            member: member.clone(),
            host: HostId::parse("g").expect("a valid name"),
            zone: Zone::parse("z").expect("a valid name"),
            free_bytes: u64::MAX,
            sessions: 0,
            draining: false,
            expires_ms: Millis::new(u64::MAX),
        };
        let (log_epoch, next) = (LogEpoch::new(1), LogOffset::new(1));
        let give = |log: &mut NodeLog<u64>, id, event| log.on(event, NOW, WriteId::from_bits(id));
        give(&mut log, 1, NodeLogEvent::FollowersRead { followers: vec![follower], wall_now: NOW });
        give(&mut log, 2, NodeLogEvent::RecordAnswered { answer: Answer::Applied(1) });
        give(&mut log, 3, NodeLogEvent::Adopted { member: member.clone(), log_epoch, next });
        give(&mut log, 4, NodeLogEvent::RecordAnswered { answer: Answer::Applied(2) });
        let made = (1..=frames).map(|_| {
            let offset = log.append(NOW).expect("an ensemble proves");
            let effects = give(&mut log, 5, NodeLogEvent::Durable { member: member.clone(), offset });
            let proof = effects.into_iter().find_map(|effect| match effect {
                NodeLogEffect::Proved(proof) => Some(proof),
                _ => None,
            });
            proof.expect("its only member has the frame")
        });
        Self(made.collect())
    }

    /// The proof that covers the frame and all before it.
    pub(super) fn of(&self, offset: LogOffset) -> EnsembleProof {
        let proof = self.0[usize::try_from(offset.get() - 1).expect("a small number")];
        assert_eq!(proof.below(), offset.next());
        proof
    }
}
