"""Faults: what `manyheads serve` does when it is killed, drained, flooded with nonsense or used for long.

    make serve-faults                                    all of them (an hour and a half)
    make serve-faults ARGS="drains --count 10"           one of them, smaller
    make serve-faults ARGS="soak --minutes 5"

    batched     every answer of a batch equals the answer of the text alone, on 10,000 texts
    drains      100 times: SIGTERM under load; no request that was sent before it may be lost
    kills       100 times: SIGKILL of a worker under load; ready again in 5 s, no request may be harmed
    soak        half an hour under load, with bundles of several tasks; memory may grow by less than 2 %
    fair        ten clients beside one with 100 times their load: p99 at most twice that without it
    malformed   100,000 malformed requests from raw sockets and from schemathesis: no 5xx, no leak

Everything runs on the loopback interface. Results are written to benchmarks/serve.json and serve.md.
"""

import argparse
import signal
import sys
from pathlib import Path
from typing import Any

from fault_fair import run_fair
from fault_malformed import run_malformed
from fault_restarts import run_drains, run_kills
from fault_steady import run_batched, run_soak
from systems import ROOT

sys.path.insert(0, str(ROOT / "benchmarks" / "speed"))

from frame import stamp, store

RESULT = ROOT / "benchmarks" / "serve.json"
FAULTS = {
    "fair": (run_fair, 30),
    "batched": (run_batched, 10_000),
    "drains": (run_drains, 100),
    "kills": (run_kills, 100),
    "soak": (run_soak, 0),
    "malformed": (run_malformed, 100_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *FAULTS], default=[], metavar="NAME", help="default: all")
    parser.add_argument("--bundle", type=Path, default=ROOT / "runs" / "quickstart" / "bundle", help="a translator")
    parser.add_argument(
        "--others", type=Path, nargs="*", default=[], help="bundles of other tasks, for the soak and for schemathesis"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--count", type=int, help="seconds, texts, drains, kills or requests; default: as above")
    parser.add_argument("--minutes", type=float, default=30.0, help="of the soak")
    parser.add_argument("--examples", type=int, default=300, help="that schemathesis tries for each operation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep-nothing", action="store_true", help="write no files")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers are ended, too
    if not given.bundle.is_dir():
        parser.error(f"{given.bundle} is no bundle. Train one (make quickstart), or name it with --bundle.")
    failed = False
    for name in given.names or FAULTS:
        run, count = FAULTS[name]
        given.number = given.count or count
        record: dict[str, Any] = {**stamp(), **run(given)}
        failed |= not record["passed"]
        shown = {key: value for key, value in record.items() if key not in ("memory", "each")}
        print(f"{name}: {'passed' if record['passed'] else 'FAILED'}: {shown}", flush=True)
        if not given.keep_nothing:
            store(RESULT, name, record)
    if not given.keep_nothing:
        import serve_tables

        serve_tables.main()
    sys.exit(failed)


if __name__ == "__main__":
    main()
