# Each recipe is one line; `scripts/test` is what CI runs.

default:
    @just --list

# Format.
fmt:
    cargo fmt --all

# Lints, as CI runs them.
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Everything that CI checks.
test *ARGS:
    scripts/test {{ARGS}}

# A laptop fleet.
dev *ARGS:
    cargo run --release -p holdfast -- dev {{ARGS}}

# Many seeds of the simulator over all scenarios.
sim SEEDS="20000" SCENARIO="everything":
    cargo run -p holdfast-sim --bin sim -- --seeds {{SEEDS}} --scenario {{SCENARIO}}

# A soak: so many seeds of every scenario, in a build that is fast and keeps its assertions.
sim-soak SEEDS="1000" FIRST="1":
    cargo run --profile sim -p holdfast-sim --bin sim -- --seed {{FIRST}} --seeds {{SEEDS}}

# Configurations of the exhaustive check that take longer than CI has.
check-large CASES="":
    cargo run --profile sim -p holdfast-check --bin check-large -- "{{CASES}}"

# The real programs under kills, pauses and store faults.
chaos MINUTES="20" *ARGS:
    cargo build --workspace --bins && "${CARGO_TARGET_DIR:-target}"/debug/chaos --minutes {{MINUTES}} {{ARGS}}

# What a fleet promises of growing and of restarts, in full; prints its figures.
fleet *ARGS:
    cargo build --release --workspace --bins && HOLDFAST_IN_FULL=1 cargo nextest run --release --workspace -E 'binary(process) & test(/fleet::|shedding::/)' --no-capture {{ARGS}}

# A dead session with a tail of 1 GiB: memory, what a killed recoverer leaves done, and the time beside a plain copy.
long-tail *ARGS:
    cargo build --release --workspace --bins && HOLDFAST_IN_FULL=1 cargo nextest run --release --workspace -E 'binary(process) & test(/long_tail::/)' --no-capture {{ARGS}}

# 10,000 alarms over 2,000 cells while owners, wakers and followers are killed; prints their lateness.
alarms *ARGS:
    cargo build --workspace --bins && HOLDFAST_IN_FULL=1 cargo nextest run --workspace -E 'binary(process) & test(alarm_storm::)' --no-capture {{ARGS}}

# The programs of the release before beside those of this one, both ways round.
versions *ARGS:
    scripts/previous && cargo build --workspace --bins && cargo nextest run --workspace -E 'binary(process) & test(versions::)' --no-capture {{ARGS}}

# Figures, each with its floor of the same run.
bench WHAT="reads" *ARGS:
    cargo run --release -p holdfast -- bench {{WHAT}} {{ARGS}}

# Durable Objects beside workerd; `just bench-objects --short` only checks that it works.
bench-objects *ARGS:
    scripts/bench-objects {{ARGS}}
