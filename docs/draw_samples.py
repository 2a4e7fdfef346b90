"""Write docs/samples.md: ten sentences of each run's test set, drawn at random when it was scored, from its log.

python docs/draw_samples.py runs/3am runs/tatoeba
"""

import json
import sys
from pathlib import Path
from typing import Any

ABOUT = {
    "3am": "3AM, English → 中文: captions of ambiguous pictures (MIT). `manyheads init` and `train`, nothing tuned.",
    "tatoeba": "Tatoeba, English → 中文: everyday sentences (CC BY 2.0 FR). `init` and `train`, nothing tuned.",
}


def last_finish(run: Path) -> dict[str, Any]:
    """What the log of a run tells of its end."""
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines() if '"Finished"' in line]
    return next(entry for entry in reversed(entries) if entry["event"] == "Finished")


def section(run: Path) -> str:
    """Ten examples of a run as a table."""
    lines = [f"## {run.name}", "", ABOUT.get(run.name, ""), ""]
    for name, card in last_finish(run)["cards"].items():
        scores = " · ".join(f"{one['name']} {one['value']:.1f}" for one in card["scores"])
        lines += [f"{name} set: {scores}", "", "| source | translation | reference |", "| --- | --- | --- |"]
        lines += [f"| {' | '.join(clean(one[key]) for key in KEYS)} |" for one in card["random"]]
    return "\n".join(lines)


KEYS = ("source", "translation", "reference")


def clean(text: str) -> str:
    """The text as a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ").strip()


if __name__ == "__main__":
    head = "# Samples\n\nDrawn at random, not chosen; by `docs/draw_samples.py` from the logs of the runs.\n"
    body = "\n\n".join(section(Path(run)) for run in sys.argv[1:])
    (Path(__file__).parent / "samples.md").write_text(f"{head}\n{body}\n", "utf-8")
