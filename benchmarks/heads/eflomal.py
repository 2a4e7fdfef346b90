"""Word alignment by eflomal, trained on the same text as a manyheads model and scored on the same gold alignments.

python benchmarks/heads/eflomal.py TRAIN.en TRAIN.de GOLD.en GOLD.de LINKS RESULT.json [--folder .peers]

eflomal is installed in its own environment. It aligns the training pairs and the gold sentences (lower-cased, without
their links) in both directions. AER is reported for each direction, for their intersection and for their union. The
stored cards of the model (multi30k.json) contain the AER of its heads on the same pairs.
"""

import argparse
import json
import os
import platform
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from manyheads.text.reading.gold_alignments import AlignedPair, Link, read_alignments

ROOT = Path(__file__).resolve().parents[2]


def error_rate(found: list[set[Link]], gold: list[AlignedPair]) -> float:
    """1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|) over all sentences (Och and Ney, 2003)."""
    sure = sum(len(links & pair.sure) for links, pair in zip(found, gold, strict=True))
    possible = sum(len(links & pair.possible) for links, pair in zip(found, gold, strict=True))
    return 1 - (sure + possible) / (sum(map(len, found)) + sum(len(pair.sure) for pair in gold))


def install(folder: Path) -> Path:
    """Install the program in its own environment and return its path."""
    home = folder / "eflomal"
    program = home / "bin" / "eflomal-align"
    if not program.exists():
        subprocess.run(["python3", "-m", "venv", home], check=True)
        subprocess.run([home / "bin" / "pip", "install", "-qq", "eflomal"], check=True)
    return program


def read_links(path: Path, first: int) -> list[set[Link]]:
    lines = path.read_text(encoding="utf-8").splitlines()[first:]
    return [{(int(i), int(j)) for i, j in (pair.split("-") for pair in line.split())} for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs=5, type=Path, metavar="FILE")
    parser.add_argument("result", type=Path)
    parser.add_argument("--folder", type=Path, default=ROOT / ".peers")
    arguments = parser.parse_args()
    *texts, links = arguments.files
    gold = read_alignments(texts[2:], links)
    program = install(arguments.folder)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side in (0, 1):
            trained = texts[side].read_text(encoding="utf-8").splitlines()
            words = [" ".join((pair.source, pair.target)[side]) for pair in gold]
            (folder / f"text{side}").write_text("\n".join([*trained, *words]).lower() + "\n", encoding="utf-8")
        n_trained = len(trained)
        command = [
            program,
            "-s",
            folder / "text0",
            "-t",
            folder / "text1",
            "-f",
            folder / "forth",
            "-r",
            folder / "back",
        ]
        subprocess.run([*command, "--overwrite"], check=True)
        forth, back = (read_links(folder / way, n_trained) for way in ("forth", "back"))
    both = list(zip(forth, back, strict=True))
    found = {
        "forth": forth, "back": back, "in both": [a & b for a, b in both], "in either": [a | b for a, b in both],
    }  # fmt: skip
    record = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "trained_on": n_trained,
        "pairs": len(gold),
        "AER": {name: round(error_rate(links, gold), 4) for name, links in found.items()},
    }
    arguments.result.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record["AER"]))


if __name__ == "__main__":
    main()
