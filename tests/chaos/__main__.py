"""`python -m tests.chaos`: faults at random, and a checker that knows the right answer."""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import get_args

from pipeline.config.settings import Corrections
from tests.chaos.report import Options, Report
from tests.chaos.run import run
from tests.chaos.schedule import plan

EVENTS_A_MINUTE = 35_000


def main() -> int:
    """Run, and give the exit code: 1 if the verdict is bad."""
    options, keep = _options()
    print(f"seed {options.seed}: {options}")
    strikes = plan(options.seed, options.minutes, options.workers, options.cluster, registry=options.avro)
    for strike in strikes:
        print(f"  {strike}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that all servers end
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="forks-chaos-"))
    good = False
    try:
        report = run(
            options, folder, lambda text: print(f"{time.monotonic() - begin:7.1f} s  {text}", flush=True)
        )
        good = report.good
    finally:
        if good and not keep:
            shutil.rmtree(folder)
        else:
            data = "" if good or options.cluster else ", and the broker's data,"
            print(f"the workers' logs{data} are in {folder}; SEED={options.seed} repeats the schedule")
    _show(report)
    return 0 if good else 1


def _options() -> tuple[Options, bool]:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long events come; strikes follow it")
    parser.add_argument("--seed", type=int, help="of events and strikes; a new one by default")
    parser.add_argument("--events", type=int, help=f"default: {EVENTS_A_MINUTE} a minute")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--cluster", action="store_true", help="on three brokers, which are struck too")
    parser.add_argument(
        "--replay",
        action="store_true",
        help="all events are there before the workers start; compare with an undisturbed run, too",
    )
    parser.add_argument("--policy", action="store_true", help="with a policy that asks for some labels only")
    parser.add_argument("--challengers", action="store_true", help="with two learners in the shadow")
    parser.add_argument(
        "--corrections",
        choices=get_args(Corrections),
        default="off",
        help="labels are corrected: add learns the later one beside the former, replace in its place",
    )
    parser.add_argument("--tables", action="store_true", help="with live tables of videos and of users")
    parser.add_argument(
        "--together",
        action="store_true",
        help="a replay of slates with corrections, live tables, weights and aligned shares, which is audited "
        "and compared with an undisturbed run",
    )
    parser.add_argument(
        "--avro", action="store_true", help="messages are in Avro, and their registry is killed, too"
    )
    parser.add_argument("--keep", action="store_true", help="keep the workers' logs")
    given = parser.parse_args()
    if not 1 <= given.workers <= given.partitions:
        parser.error(f"--workers {given.workers}: 1 to as many as there are partitions ({given.partitions})")
    if given.replay and given.corrections != "off":
        parser.error("--corrections: the only order of a replay is known without them")
    if given.together and (given.avro or given.tables or given.replay or given.corrections != "off"):
        parser.error("--together has an inputs' format, tables, a replay and corrections of its own")
    if given.avro and given.tables:
        parser.error("--avro: not together with live tables, whose stream has a definition of its own")
    options = Options(
        seed=secrets.randbelow(1_000_000) if given.seed is None else given.seed,
        minutes=given.minutes,
        events=given.events or int(EVENTS_A_MINUTE * given.minutes),
        partitions=given.partitions,
        workers=given.workers,
        cluster=given.cluster,
        replay=given.replay or given.together,
        challengers=given.challengers,
        policy=given.policy,
        tables=given.tables,
        corrections="replace" if given.together else given.corrections,
        together=given.together,
        avro=given.avro,
    )
    return options, given.keep


def _show(report: Report) -> None:
    for fault, number in report.faults.items():
        recovery = _recovery("recovery", report.recovery_seconds(fault))
        alone = _recovery("alone", report.recovery_seconds(fault, alone=True))
        print(f"{number:5}  {fault.value}{recovery}{alone}")
    print(f"{report.rebalances:5}  rebalances, at least")
    for problem in report.problems:
        print(f"WRONG: {problem}")
    print(f"verdict: {'nothing lost, nothing twice' if report.good else 'bad'}")
    print(json.dumps(report.figures()))


def _recovery(what: str, seconds: list[float]) -> str:
    """Return the median and the worst of some recoveries, if there are any."""
    if not seconds:
        return ""
    return f"; {what} ({len(seconds)}) {median(seconds):.1f} s, at worst {max(seconds):.1f} s"


if __name__ == "__main__":
    sys.exit(main())
