"""A network partition: two processes in two network namespaces, whose cable is pulled in the middle of a run.

    sudo python benchmarks/scale/partition.py      (root on Linux, with `ip` of iproute2)

Both have to end with a clear error within the timeout, nothing may be lost, and the resumed run has to end with the
same bytes as one that was never disturbed. The result is added to benchmarks/scale/training.json.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from table import write_page  # noqa: E402

from faults.running import differences, outcome, write_recipe  # noqa: E402
from training import RESULTS, TINY, times_of, wait_for  # noqa: E402

TIMEOUT = 10
NAMES = ("manyheads0", "manyheads1")  # of the namespaces, and of their ends of the cable
ADDRESSES = ("10.77.0.1", "10.77.0.2")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def lay_cable() -> None:
    """Create the namespaces and a cable between them."""
    for name in NAMES:
        ip("netns", "add", name)
    ip("link", "add", NAMES[0], "type", "veth", "peer", "name", NAMES[1])
    for name, address in zip(NAMES, ADDRESSES, strict=True):
        ip("link", "set", name, "netns", name)
        ip("-n", name, "address", "add", f"{address}/24", "dev", name)
        plug(name)
        ip("-n", name, "link", "set", "lo", "up")


def plug(name: str, state: str = "up") -> None:
    ip("-n", name, "link", "set", name, state)


def start(rank: int, recipe: Path, folder: Path) -> Any:
    environ = os.environ | {
        "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": "29511",
        "GLOO_SOCKET_IFNAME": NAMES[rank], "OMP_NUM_THREADS": "1", "MANYHEADS_TIMEOUT": str(TIMEOUT),
        "MANYHEADS_CACHE": str(folder.parent / "cache"),
    }  # fmt: skip
    command = [sys.executable, "-m", "manyheads", "train", str(recipe), *TINY, "-o", str(folder), "--plain"]
    out = Path(f"{folder}-{rank}.out").open("w")  # noqa: SIM115
    return subprocess.Popen(["ip", "netns", "exec", NAMES[rank], *command], stdout=out, stderr=out, env=environ)


def measure(folder: Path) -> dict[str, Any]:
    recipe = write_recipe(folder / "data")
    runs = {}
    for name in ("whole", "parted"):
        runs[name] = folder / name
        processes = [start(rank, recipe, runs[name]) for rank in (0, 1)]
        if name == "parted":
            assert wait_for(lambda: len(times_of(runs["parted"], "Step")) >= 40, processes[0])
            for end in NAMES:
                plug(end, "down")
            moment = time.monotonic()
            codes = [process.wait(20 * TIMEOUT) for process in processes]
            seconds = time.monotonic() - moment
            outputs = [Path(f"{runs[name]}-{rank}.out").read_text().splitlines() for rank in (0, 1)]
            messages = [lines[-1] if lines else "(nothing)" for lines in outputs]
            for end in NAMES:
                plug(end)
            processes = [start(rank, recipe, runs[name]) for rank in (0, 1)]
        assert [process.wait(1200) for process in processes] == [0, 0], Path(f"{runs[name]}-0.out").read_text()[-2000:]
    different = differences(outcome(runs["whole"]), outcome(runs["parted"]))
    return {"timeout": TIMEOUT, "seconds": seconds, "codes": codes, "messages": messages, "different": different}


def main() -> None:
    signal.alarm(2400)
    lay_cable()
    try:
        with tempfile.TemporaryDirectory() as folder:
            result = measure(Path(folder)) | {"date": time.strftime("%Y-%m-%d")}
    finally:
        for name in NAMES:
            ip("netns", "delete", name)
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps(results | {"partition": result}, indent=1) + "\n", "utf-8")
    write_page()
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
