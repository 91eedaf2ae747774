//! The dashboard and the alerts use metrics that there are, with attributes that those have.

use std::collections::BTreeSet;

use holdfast_telemetry::names::{Kind, METRICS, Metric};

const DASHBOARD: &str = include_str!("../../../deploy/grafana/holdfast.json");
const ALERTS: &str = include_str!("../../../deploy/prometheus/alerts.yml");

/// Labels that Prometheus itself adds, and a histogram's.
const FOREIGN_LABELS: [&str; 3] = ["instance", "job", "le"];

/// What a metric is called where it is queried.
fn series(metric: &Metric) -> Vec<String> {
    let name = metric.name.replace('.', "_");
    match metric.kind {
        Kind::Counter => vec![name + "_total"],
        Kind::Histogram(_) => ["_bucket", "_count", "_sum"].map(|end| format!("{name}{end}")).into(),
        Kind::UpDown | Kind::Gauge => vec![name],
    }
}

fn metric_of(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| series(metric).iter().any(|series| series == name))
}

/// Each name in a text, with the labels that its selector asks for.
fn uses(text: &str) -> Vec<(String, Vec<String>)> {
    let mut uses = Vec::new();
    for (start, _) in text.match_indices("holdfast_") {
        let rest = &text[start..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let selector = rest.strip_prefix('{').and_then(|rest| rest.split('}').next()).unwrap_or("");
        let labels = selector.split(',').filter_map(|matcher| {
            let label = matcher.split(['=', '!']).next()?.trim();
            (!label.is_empty()).then(|| label.to_owned())
        });
        uses.push((name.to_owned(), labels.collect()));
    }
    uses
}

/// The labels that `by (…)` groups by.
fn groupings(expression: &str) -> Vec<String> {
    expression
        .split("by (")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .flat_map(|labels| labels.split(','))
        .map(|label| label.trim().to_owned())
        .collect()
}

fn expressions() -> Vec<String> {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).expect("the dashboard is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels").iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let mut found: Vec<String> = targets
        .map(|target| target["expr"].as_str().expect("a target has an expression").to_owned())
        .collect();
    let alerts = ALERTS.split("expr:").skip(1);
    found.extend(alerts.map(|rest| {
        let end = rest.find("\n        labels:").expect("an alert has labels after its expression");
        rest[..end].to_owned()
    }));
    found
}

#[test]
fn what_is_deployed_names_metrics_and_attributes_that_there_are() {
    let expressions = expressions();
    assert!(expressions.len() > 40, "{} expressions", expressions.len());
    for expression in &expressions {
        let uses = uses(expression);
        assert!(!uses.is_empty(), "`{expression}` uses no metric of ours");
        let mut known: BTreeSet<&str> = FOREIGN_LABELS.into();
        for (name, labels) in &uses {
            let metric = metric_of(name).unwrap_or_else(|| panic!("`{name}` is no metric: `{expression}`"));
            known.extend(metric.attributes);
            for label in labels {
                let is_known =
                    metric.attributes.contains(&label.as_str()) || FOREIGN_LABELS.contains(&label.as_str());
                assert!(is_known, "`{name}` has no attribute `{label}`: `{expression}`");
            }
        }
        for label in groupings(expression) {
            assert!(known.contains(label.as_str()), "nothing has `{label}`: `{expression}`");
        }
    }
    // Whatever else is written in the files: variables, titles.
    for (name, _) in uses(DASHBOARD).into_iter().chain(uses(ALERTS)) {
        assert!(metric_of(&name).is_some(), "`{name}` is no metric");
    }
}

#[test]
fn a_name_that_is_none_is_found() {
    assert!(metric_of("holdfast_cellnode_proofs_count_total").is_some());
    assert!(metric_of("holdfast_cellnode_proofs_count").is_none());
    assert!(metric_of("holdfast_cellnode_gate_wait_seconds").is_none());
    let used = uses("rate(holdfast_a_total{outcome=~\"x|y\", le!=\"1\"}[5m]) > holdfast_b");
    let expected = [("holdfast_a_total", vec!["outcome", "le"]), ("holdfast_b", vec![])];
    assert_eq!(used.len(), 2);
    for ((name, labels), (expected_name, expected_labels)) in used.iter().zip(expected) {
        assert_eq!(
            (name.as_str(), labels.iter().map(String::as_str).collect::<Vec<_>>()),
            (expected_name, expected_labels)
        );
    }
}
