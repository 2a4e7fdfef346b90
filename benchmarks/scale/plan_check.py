"""`manyheads plan` against real runs: predicted and measured time of six recipes. `make plan-check`

Each recipe is planned and then run from start to end, with one thread. The plan's time is compared with the wall-clock
time of the run and with its processor time, which other programs affect less. Results go to plan.json and plan.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "speed"))

from frame import stamp  # noqa: E402

from manyheads.settings import to_toml  # noqa: E402
from manyheads.tasks import TASKS  # noqa: E402

# The recipes of `manyheads quickstart`, with a number of steps that takes a minute or two.
RECIPES = {
    "quickstart: translate en-zh": ("seq2seq", "en-zh", 300),
    "quickstart: classify en": ("classify", "en", 200),
    "quickstart: language model en": ("language", "en", 100),
}
# Recipes of recipes/, on real text, that `plan` was never adjusted to.
FILES = {"multi30k": ("multi30k-en-de/tok", 200), "snips": ("snips", 300), "tinyshakespeare": ("tinyshakespeare", 100)}
PAPER = {"hours": 12.0, "flop": 3.3e18, "gpus": 8}  # base model of 2017: 100,000 steps on eight P100
BASE = HERE.parents[1] / "recipes" / "wmt14-base.toml"


def plan(recipe: Path, *options: str) -> dict[str, Any]:
    words = [sys.executable, "-m", "manyheads", "plan", str(recipe), "--json", *options]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def run(recipe: Path, folder: Path, *options: str) -> dict[str, float]:
    """Train, and return the processor and wall-clock seconds of the process."""
    words = [sys.executable, "-m", "manyheads", "train", str(recipe), *options, "-o", str(folder), "--plain"]
    environment = os.environ | {"MANYHEADS_CACHE": str(folder.with_name("cache"))}
    started = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} failed with {process.returncode}")
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    prepared = next(event["seconds"] for event in events if event["event"] == "Prepared")
    return {
        "processor": usage.ru_utime + usage.ru_stime,
        "wall": time.perf_counter() - started,
        "prepared_wall": prepared,
        "peak_memory": usage.ru_maxrss * 1024,
    }


def check(name: str, data: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        if name in FILES:
            folder, steps = FILES[name]
            recipe = HERE.parents[1] / "recipes" / f"{name}.toml"
            options = [f"data.folder={data / folder}", f"train.steps={steps}"]
        else:
            kind, corpus, steps = RECIPES[name]
            recipe, options = Path(scratch) / "recipe.toml", []
            recipe.write_text(to_toml(TASKS[kind].quickstart.make_recipe(corpus, steps)))  # type: ignore[union-attr]
        predicted = plan(recipe, *options)
        measured = run(recipe, Path(scratch) / "run", *options)
    return {"steps": steps, "predicted": predicted, "measured": measured} | stamp()


def table(results: dict[str, Any]) -> str:
    lines = [
        "| recipe | steps | FLOP | predicted, s | wall-clock s | predicted / wall-clock | predicted / processor time |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, one in results.items():
        seconds, measured = one["predicted"]["seconds"]["total"], one["measured"]
        lines.append(
            f"| {name} | {one['steps']:,} | {one['predicted']['flop']['total']:.2e} | {seconds:.0f} "
            f"| {measured['wall']:.0f} | {seconds / measured['wall']:.2f} | {seconds / measured['processor']:.2f} |"
        )
    return "\n".join(lines)


def paper_table() -> str:
    made = plan(BASE, "--gpus", str(PAPER["gpus"]), "--kind", "p100")
    hours, hardware = made["seconds"]["total"] / 3600, made["flop"]["hardware"]
    used = made["flop"]["total"] / PAPER["flop"]
    return "\n".join(
        [
            "| base of 2017 on eight P100 | plan | paper | plan / paper |",
            "| --- | ---: | ---: | ---: |",
            f"| parameters | {made['parameters']['total']:,} | 65 M | {made['parameters']['total'] / 65e6:.2f} |",
            f"| FLOP of the matrix products | {made['flop']['total']:.2e} | – | {used:.2f} of the paper's 3.3e18 |",
            f"| time × GPUs × 9.5 TFLOP/s | {hardware:.2e} | 3.3e18 | {hardware / PAPER['flop']:.2f} |",
            f"| hours | {hours:.1f} | 12 | {hours / PAPER['hours']:.2f} |",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    known = [*RECIPES, *FILES]
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--data", type=Path, required=True, help="folder of the text of recipes/")
    parser.add_argument("--paper-only", action="store_true", help="only the table of the paper")
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "MANYHEADS_LANG": "en"}
    file = HERE / "plan.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    for name in [] if options.paper_only else options.names or known:
        results[name] = check(name, options.data)
        results = {one: results[one] for one in known if one in results}
        file.write_text(json.dumps(results, indent=1) + "\n")
        print(table({name: results[name]}).splitlines()[-1], flush=True)
    page = HERE / "plan.md"
    text = (
        page.read_text() if page.exists() else "# Plans against runs\n\n<!-- runs -->\n<!-- paper -->\n<!-- end -->\n"
    )
    before, _, rest = text.partition("<!-- runs -->")
    _, _, rest = rest.partition("<!-- paper -->")
    after = rest.partition("<!-- end -->")[2]
    stamps = sorted({f"{one['date']}, {one['machine']}, load {one['load']}" for one in results.values()})
    measured = "\n".join(f"Measured {one}." for one in stamps)
    page.write_text(
        f"{before}<!-- runs -->\n{table(results)}\n\n{measured}\n<!-- paper -->\n{paper_table()}\n<!-- end -->{after}"
    )


if __name__ == "__main__":
    main()
