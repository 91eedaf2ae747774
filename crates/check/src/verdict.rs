//! Runs a model to its end and compares what was found with what was pinned: a change of the number of states means that
//! a protocol, or a model of it, is another than the one that was reviewed.

use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// The size of a state space all of which was visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// States as generated, those seen before included.
    pub generated: usize,
    /// Different states.
    pub unique: usize,
    /// Steps on the longest of the shortest ways to a state.
    pub depth: usize,
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// How much was visited.
    pub visited: Verdict,
    /// Properties that must always hold and do not, each with the shortest way there.
    pub violated: Vec<(&'static str, String)>,
    /// Properties that must hold somewhere and do not: the model says less than it seems to.
    pub unreached: Vec<&'static str>,
}

/// Visits all states, or as many as it takes to find the first violation.
pub fn explore<M>(model: M) -> Findings
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    let properties: Vec<_> = model.properties().into_iter().map(|p| (p.name, p.expectation)).collect();
    let checker = model.checker().threads(1).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let visited = Verdict {
        generated: checker.state_count(),
        unique: checker.unique_state_count(),
        depth: checker.max_depth(),
    };
    let discoveries = checker.discoveries();
    let of_kind = |kind: Expectation| {
        properties.iter().filter(move |(_, expectation)| *expectation == kind).map(|(name, _)| *name)
    };
    let violated = of_kind(Expectation::Always)
        .filter_map(|name| {
            let path = discoveries.get(name)?.clone().into_actions();
            let steps: Vec<String> = path.iter().map(|step| format!("  {step:?}")).collect();
            Some((name, steps.join("\n")))
        })
        .collect();
    let unreached = of_kind(Expectation::Sometimes).filter(|name| !discoveries.contains_key(name)).collect();
    Findings { visited, violated, unreached }
}

/// Visits all states and requires that every property holds and that the state space is the pinned one.
///
/// # Panics
/// When it is not so.
pub fn must_hold<M>(name: &str, model: M, pinned: Verdict)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    let Findings { visited, violated, unreached } = explore(model);
    println!("{name}: {visited:?}");
    if let Some((property, path)) = violated.first() {
        panic!("{name}: {property} does not hold after these steps:\n{path}");
    }
    assert!(
        unreached.is_empty(),
        "{name}: nothing shows that {unreached:?}; the model proves less than it should"
    );
    assert_eq!(
        visited, pinned,
        "{name}: the state space (left) is not the reviewed one (right). If a change of the core or of the model \
         explains it, review that change, then write the left one into the test and into docs/invariants.md"
    );
}
