//! The bound on load: no node takes a cell while it holds clearly more than its share.

/// A node takes cells up to this share of its weighted mean.
pub const LOAD_FACTOR_PERCENT: u64 = 125;
/// Cells above the bound that still count as even: with few cells the mean says nothing about load, and a cell should
/// rather come back to the node that has its files.
pub const LOAD_SLACK_CELLS: u64 = 16;

/// Most cells at which a node of `weight` still takes another, when nodes of `total_weight` hold `total_cells`. The
/// bounds of all nodes together exceed the cells, so that some node is always below its own.
#[must_use]
pub fn load_bound(weight: u32, total_weight: u64, total_cells: u64) -> u64 {
    let share =
        u128::from(total_cells.saturating_add(1)) * u128::from(weight) * u128::from(LOAD_FACTOR_PERCENT);
    let bound = share.div_ceil(u128::from(total_weight.max(1)) * 100);
    u64::try_from(bound).unwrap_or(u64::MAX).saturating_add(LOAD_SLACK_CELLS)
}
