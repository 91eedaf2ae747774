use super::*;

#[test]
fn a_date_is_a_day() {
    for good in ["2026-01-31", "2020-12-01"] {
        assert!(is_date(good), "{good}");
    }
    for bad in ["", "2026-1-1", "2026-00-01", "2026-01-32", "2026-01-01-01", "+026-01-01"] {
        assert!(!is_date(bad), "{bad}");
    }
}
