//! Which cellnode is asked to recover the log of a dead session.

use holdfast_types::{NodeName, SessionId};

use crate::placement::mix;

/// The same one for as long as it lives, so that a recovery that takes long is joined and not begun anew elsewhere; logs
/// spread over the nodes. None without any node.
#[must_use]
pub fn recoverer<'a>(log: SessionId, nodes: impl IntoIterator<Item = &'a NodeName>) -> Option<&'a NodeName> {
    let bits = log.bits();
    let session = u64::try_from(bits >> 64).expect("64 bits")
        ^ u64::try_from(bits & u128::from(u64::MAX)).expect("64 bits");
    let weight = |node: &NodeName| {
        let fnv = node.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        mix(mix(session) ^ fnv)
    };
    nodes.into_iter().max_by_key(|node| (weight(node), *node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    #[test]
    fn a_log_keeps_its_recoverer_while_that_lives_and_logs_spread() {
        let nodes: Vec<NodeName> =
            ["a", "b", "c"].iter().map(|name| NodeName::parse(name).unwrap()).collect();
        let mut counts = BTreeMap::new();
        for number in 0..3_000 {
            let log = SessionId::from_bits(number << 64 | 7);
            let chosen = recoverer(log, &nodes).unwrap();
            *counts.entry(chosen).or_insert(0) += 1;
            let others = nodes.iter().filter(|node| *node != chosen);
            let without_one: Vec<&NodeName> =
                nodes.iter().filter(|node| Some(*node) != others.clone().next()).collect();
            assert_eq!(recoverer(log, without_one), Some(chosen), "another's death moves it");
        }
        assert!(counts.values().all(|count| (800..1_200).contains(count)), "{counts:?}");
        assert_eq!(recoverer(SessionId::from_bits(1), []), None);
    }
}
