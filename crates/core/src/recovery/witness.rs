//! Who proves what was acknowledged. Acknowledgements need all members of an ensemble, so one member that shows all it ever
//! fsynced, on the disk that the record names, at that ensemble's log epoch or a later one, holds every acknowledged
//! frame; and once it is sealed, no further one can be acknowledged.

use alloc::string::String;
use alloc::vec::Vec;

use holdfast_types::LogEpoch;

use super::{Holdings, Missing, MissingMember};
use crate::log_record::{Ensemble, MemberId};
use crate::mutant::{self, Mutant};

/// What is known of one member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Standing {
    Asked,
    Conclusive(Holdings),
    Doubtful(Holdings, Missing),
    Unreachable(String),
    /// Its frames could not be read.
    TailFailed(String),
}

/// The ensemble that was asked, and its answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Witnesses {
    pub(super) log_epoch: LogEpoch,
    members: Vec<(MemberId, Standing)>,
}

impl Witnesses {
    pub(super) fn ask(ensemble: &Ensemble) -> Self {
        let members = ensemble.members.iter().map(|member| (member.clone(), Standing::Asked)).collect();
        Self { log_epoch: ensemble.log_epoch, members }
    }

    /// Members that are in the ensemble by name and disk; anything else is no answer to a question of ours.
    fn standing(&mut self, member: &MemberId) -> Option<&mut Standing> {
        self.members.iter_mut().find(|(known, _)| known == member).map(|(_, standing)| standing)
    }

    pub(super) fn sealed(&mut self, member: &MemberId, holdings: Holdings) {
        let answer = match doubt(member, self.log_epoch, holdings) {
            Some(_) if mutant::is(Mutant::IncompleteWitness) => Standing::Conclusive(holdings),
            Some(why) => Standing::Doubtful(holdings, why),
            None => Standing::Conclusive(holdings),
        };
        if let Some(standing) = self.standing(member) {
            *standing = answer;
        }
    }

    pub(super) fn unreachable(&mut self, member: &MemberId, reason: String) {
        if let Some(standing) = self.standing(member) {
            *standing = Standing::Unreachable(reason);
        }
    }

    pub(super) fn tail_failed(&mut self, member: &MemberId, reason: String) {
        if let Some(standing) = self.standing(member) {
            *standing = Standing::TailFailed(reason);
        }
    }

    pub(super) fn conclusive(&self) -> Option<(MemberId, Holdings)> {
        self.members.iter().find_map(|(member, standing)| match standing {
            Standing::Conclusive(holdings) => Some((member.clone(), *holdings)),
            _ => None,
        })
    }

    /// Of those that are no witnesses, the one that reaches furthest.
    pub(super) fn best_of_the_rest(&self) -> Option<(MemberId, Holdings)> {
        let rest = self.members.iter().filter_map(|(member, standing)| match standing {
            Standing::Doubtful(holdings, _) if holdings.is_sealed && holdings.start < holdings.end => {
                Some((member.clone(), *holdings))
            }
            _ => None,
        });
        rest.max_by_key(|(_, holdings)| (holdings.log_epoch, holdings.end))
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.members.iter().any(|(_, standing)| matches!(standing, Standing::Asked))
    }

    pub(super) fn has_failed_tails(&self) -> bool {
        self.members.iter().any(|(_, standing)| matches!(standing, Standing::TailFailed(_)))
    }

    pub(super) fn missing(&self) -> Vec<MissingMember> {
        let rows = self.members.iter().filter_map(|(member, standing)| {
            let why = match standing {
                Standing::Asked | Standing::Conclusive(_) => return None,
                Standing::Doubtful(_, why) => why.clone(),
                Standing::Unreachable(reason) => Missing::NoAnswer(reason.clone()),
                Standing::TailFailed(reason) => Missing::TailFailed(reason.clone()),
            };
            Some(MissingMember { member: member.clone(), why })
        });
        rows.collect()
    }
}

/// Why the holdings are no witness of the log epoch; none: they are.
pub(super) fn doubt(member: &MemberId, log_epoch: LogEpoch, holdings: Holdings) -> Option<Missing> {
    if holdings.incarnation != member.incarnation {
        Some(Missing::OtherDisk { found: holdings.incarnation })
    } else if holdings.log_epoch < log_epoch {
        Some(Missing::OlderLogEpoch { found: holdings.log_epoch })
    } else if !holdings.is_complete {
        Some(Missing::Incomplete)
    } else if !holdings.is_sealed {
        Some(Missing::NotSealed)
    } else {
        None
    }
}
