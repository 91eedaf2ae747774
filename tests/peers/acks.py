"""Acknowledged writes of Holdfast beside those of its peers, side by side in one run: `scripts/bench-acks`.

Each system runs alone on loopback, in a temporary folder on the same disk, with its own clients on the same processors;
the systems take turns, in another order each round, and the median round of each figure counts. A client has one write
in flight. After each measurement the system's own data is held against what it has acknowledged."""

import argparse
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile

from children import PeerError, kill_all, run
from etcd import Etcd
from postgres import Postgres

# Clients, and the objects that they write: cells, rows, keys.
CASES = [(1, 1), (64, 1), (64, 64)]
HOLDFAST = "holdfast"
# How much dearer than one sync and two round trips the median of a lone client may be.
RATIO_MAX = 2.0
# Beyond this load per processor something else is running.
LOAD_MAX = 0.25


class Holdfast:
    """Ours. `holdfast bench acks` starts and stops the fleet by itself and measures the floors in the same run."""

    def __init__(self, folder, program, followers):
        self.folder, self.program, self.followers = folder, program, followers
        what = f"{followers} followers" if followers else "bucket proofs"
        self.name = f"Holdfast, {what}"
        self.version = run([program, "--version"]).split()[1]
        self.reports = []

    def round(self, seconds):
        out = run([self.program, "--json", "bench", "acks", "--seconds", str(seconds), "--followers", str(self.followers),
                   "--dir", str(self.folder)])
        report = json.loads(out)
        self.reports.append(report)
        return {(line["connections"], line["cells"]): figures(line["requests_per_s"], line["p50_us"], line["p99_us"])
                for line in report["lines"]}


class Peer:
    """A peer that is started and stopped for each round."""

    def __init__(self, system):
        self.system, self.name, self.version = system, system.name, system.version

    def round(self, seconds):
        rows = {}
        self.system.start()
        try:
            for clients, objects in CASES:
                seen = self.system.measure(clients, objects, seconds)
                rows[clients, objects] = figures(seen["per_second"], seen["p50_us"], seen["p99_us"])
        finally:
            self.system.stop()
        return rows


def figures(per_second, p50_us, p99_us):
    return {"acks_per_s": round(per_second, 1), "p50_us": p50_us, "p99_us": p99_us}


def median(rounds, by=lambda figure: figure["acks_per_s"]):
    """The middle one; of an even number the lower."""
    return sorted(rounds, key=by)[(len(rounds) - 1) // 2]


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench-acks", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON value instead of the table")
    parser.add_argument("--seconds", type=int, default=4, help="measured time of each figure and round (default 4)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--followers", type=int, default=2, help="Holdfast's followers; 0: bucket proofs (default 2)")
    parser.add_argument("--only", action="append", choices=[HOLDFAST, "etcd", "postgres"], help="measure this; may be repeated")
    parser.add_argument("--dir", default=tempfile.gettempdir(), help="a folder on the disk to measure (default: the system's temporary one)")
    options = parser.parse_args()
    if options.seconds < 1 or options.rounds < 1:
        parser.error("--seconds and --rounds are at least 1")
    return options


def prepare(options, folder, programs):
    """The systems to measure."""
    wanted = options.only or [HOLDFAST, "etcd", "postgres"]
    systems = []
    for name in dict.fromkeys(wanted):
        own = folder / name
        own.mkdir()
        progress(f"preparing {name}")
        if name == HOLDFAST:
            systems.append(Holdfast(own, programs / "holdfast", options.followers))
        elif name == "etcd":
            systems.append(Peer(Etcd(own, programs / "etcd_load")))
        else:
            systems.append(Peer(Postgres(own)))
    return systems


def measure(systems, options):
    """By system: by case: the figures of each round."""
    seen = {system.name: {case: [] for case in CASES} for system in systems}
    for number in range(options.rounds):
        turn = number % len(systems)
        for system in systems[turn:] + systems[:turn]:
            progress(f"round {number + 1} of {options.rounds}: {system.name}")
            for case, figure in system.round(options.seconds).items():
                seen[system.name][case].append(figure)
    return seen


def rows_of(systems, seen):
    rows = []
    for clients, objects in CASES:
        for system in systems:
            rounds = seen[system.name][clients, objects]
            rows.append({"system": system.name, "version": system.version, "clients": clients, "objects": objects,
                         **median(rounds), "rounds": rounds})
    return rows


def floors_of(holdfast):
    """The floors' medians over the rounds, by name, and what is wanted of the lone client."""
    by_name = {}
    for report in holdfast.reports:
        for line in report["floors"]:
            by_name.setdefault(line["what"], []).append(figures(line["requests_per_s"], line["p50_us"], line["p99_us"]))
    floors = [{"what": what, **median(rounds), "rounds": rounds} for what, rounds in by_name.items()]
    ratios = [line["p50_to_floor"] for report in holdfast.reports for line in report["lines"] if "p50_to_floor" in line]
    ratio = median(ratios, by=lambda ratio: ratio)
    verdict = {"what": "1 client: p50 by that of one fdatasync and two round trips", "ratio": round(ratio, 2),
               "wanted": f"at most {RATIO_MAX}", "met": ratio <= RATIO_MAX}
    return floors, verdict


def cpu_of(holdfast):
    """CPU microseconds of an update by program, the median of each over the rounds, by case."""
    seen = {}
    for report in holdfast.reports:
        for line in report["lines"]:
            programs = seen.setdefault((line["connections"], line["cells"]), {})
            for program, us in line.get("cpu_us_by_program", {}).items():
                programs.setdefault(program, []).append(us)
    return [{"clients": clients, "objects": objects,
             "us_by_program": {program: round(median(us, by=lambda one: one), 1) for program, us in programs.items()}}
            for (clients, objects), programs in seen.items()]


def verdicts_of(rows, ours):
    """How many times the writes of each peer ours are, with 64 clients."""
    verdicts = []
    for row in rows:
        if row["system"] == ours or row["clients"] == 1:
            continue
        own = next(r for r in rows if r["system"] == ours and (r["clients"], r["objects"]) == (row["clients"], row["objects"]))
        ratio = own["acks_per_s"] / max(row["acks_per_s"], 0.1)
        verdicts.append({"what": f"{row['clients']} clients, objects: {row['objects']}: acknowledged by those of {row['system']}",
                         "ratio": round(ratio, 2), "wanted": "more than 1", "met": ratio > 1})
    return verdicts


def result_of(systems, seen, options, folder, load):
    rows = rows_of(systems, seen)
    result = {"bench": "acks-and-peers", "seconds": options.seconds, "rounds": options.rounds, "processors": os.cpu_count(),
              "load_before": load, "file_system": file_system(folder), "floors": [], "rows": rows, "cpu": [], "verdicts": []}
    holdfast = next((system for system in systems if isinstance(system, Holdfast)), None)
    if holdfast:
        result["floors"], verdict = floors_of(holdfast)
        result["cpu"] = cpu_of(holdfast)
        result["verdicts"] = [verdict, *verdicts_of(rows, holdfast.name)]
    return result


def text_of(result):
    table = [["SYSTEM", "CLIENTS", "OBJECTS", "ACKS/S", "P50 US", "P99 US", "ACKS/S OF EACH ROUND"]]
    for floor in result["floors"]:
        table.append(["floor: " + floor["what"], "", "", *cells(floor)])
    for row in result["rows"]:
        table.append([f"{row['system']} ({row['version']})", str(row["clients"]), str(row["objects"]), *cells(row)])
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    lines = []
    for line in table:
        padded = [cell.ljust(width) if column in (0, 6) else cell.rjust(width)
                  for column, (cell, width) in enumerate(zip(line, widths))]
        lines.append("  ".join(padded).rstrip())
    lines.append("")
    for row in result["cpu"]:
        each = ", ".join(f"{program} {us}" for program, us in row["us_by_program"].items())
        lines.append(f"{HOLDFAST}, clients: {row['clients']}, objects: {row['objects']}: CPU us of an update: {each}; "
                     f"in all {sum(row['us_by_program'].values()):.1f}")
    for verdict in result["verdicts"]:
        lines.append(f"{'met   ' if verdict['met'] else 'MISSED'} {verdict['what']}: {verdict['ratio']:.2f} (wanted: {verdict['wanted']})")
    lines.append(f"{result['rounds']} rounds of {result['seconds']} s; {result['processors']} processors, load before "
                 f"{result['load_before']}, {result['file_system']}; the median round counts")
    return "\n".join(lines)


def cells(figure):
    rounds = " ".join(f"{r['acks_per_s']:.0f}" for r in figure["rounds"])
    return [f"{figure['acks_per_s']:.0f}", str(figure["p50_us"]), str(figure["p99_us"]), rounds]


def file_system(folder):
    return run(["stat", "--file-system", "--format=%T", str(folder)]).strip()


def progress(text):
    print(f"bench-acks: {text}", file=sys.stderr, flush=True)


def main():
    options = arguments()
    # As an error, so that what was made is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    programs = pathlib.Path(os.environ["HOLDFAST_BIN_DIR"]).absolute()
    load = round(os.getloadavg()[0], 2)
    if load > LOAD_MAX * (os.cpu_count() or 1):
        progress(f"the machine is busy (load {load}): what is measured now says little")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-bench-acks-", dir=options.dir))
    # PostgreSQL runs as another user and has its folder below.
    folder.chmod(0o711)
    try:
        if file_system(folder) in ("tmpfs", "ramfs"):
            raise PeerError(f"`{options.dir}` is in memory, where a sync costs nothing: name another --dir")
        systems = prepare(options, folder, programs)
        result = result_of(systems, measure(systems, options), options, folder, load)
    except PeerError as error:
        raise SystemExit(f"bench-acks: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        kill_all()
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(result) if options.json else text_of(result))


if __name__ == "__main__":
    main()
