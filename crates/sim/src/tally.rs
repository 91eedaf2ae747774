//! How often what a scenario is made for happened: a world in which nothing of a kind happens proves nothing of it.

/// Counts of one run, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ensembles that became active.
    pub ensembles: u64,
    /// Proofs by ensembles.
    pub proofs: u64,
    /// Members that were asked anew because their record had moved on.
    pub asked_anew: u64,
    /// Members that were given up for slowness...
    pub slow: u64,
    /// ...of them, while all were slow for long.
    pub replaced: u64,
    /// Recoveries that came to their end.
    pub recovered: u64,
    /// Recoverers that were taken over before they were silent for long.
    pub relieved: u64,
    /// Logs that were sealed with a declared loss.
    pub declared: u64,
    /// Bundles that the store was given.
    pub bundled: u64,
    /// Runs of alarms' handlers.
    pub alarm_runs: u64,
    /// Of them, those that were counted before they began.
    pub counted_first: u64,
    /// Processes that a run of an alarm has ended.
    pub killed: u64,
    /// Alarms that were given up after processes that ended.
    pub given_up: u64,
    /// Wake entries that were deleted.
    pub entries_deleted: u64,
    /// Cells that a node opened because another told it that it had given them up.
    pub adopted: u64,
    /// Cells whose owner record could not be read and that were purged.
    pub forced: u64,
    /// Objects of histories that owners asked to have deleted.
    pub retired: u64,
    /// Marks that were swept.
    pub swept: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        let Self {
            ensembles,
            proofs,
            asked_anew,
            slow,
            replaced,
            recovered,
            relieved,
            declared,
            bundled,
            alarm_runs,
            counted_first,
            killed,
            given_up,
            entries_deleted,
            adopted,
            forced,
            retired,
            swept,
        } = other;
        self.ensembles += ensembles;
        self.proofs += proofs;
        self.asked_anew += asked_anew;
        self.slow += slow;
        self.replaced += replaced;
        self.recovered += recovered;
        self.relieved += relieved;
        self.declared += declared;
        self.bundled += bundled;
        self.alarm_runs += alarm_runs;
        self.counted_first += counted_first;
        self.killed += killed;
        self.given_up += given_up;
        self.entries_deleted += entries_deleted;
        self.adopted += adopted;
        self.forced += forced;
        self.retired += retired;
        self.swept += swept;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            ensembles,
            proofs,
            asked_anew,
            slow,
            replaced,
            recovered,
            relieved,
            declared,
            bundled,
            alarm_runs,
            counted_first,
            killed,
            given_up,
            entries_deleted,
            adopted,
            forced,
            retired,
            swept,
        } = self;
        write!(
            f,
            "{ensembles} ensembles, {proofs} proofs, {asked_anew} members asked anew, {slow} slow, {replaced} replaced, {recovered} recoveries, \
             {relieved} recoverers relieved, {declared} losses declared, {bundled} bundles, {alarm_runs} runs of alarms ({counted_first} counted first, {killed} deadly, {given_up} given up), {entries_deleted} wake entries deleted, \
             {adopted} cells adopted, {forced} purged by force, \
             {retired} objects retired, {swept} marks swept"
        )
    }
}
