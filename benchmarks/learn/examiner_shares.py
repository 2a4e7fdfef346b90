"""How often the examiner names the mistake of a wrong solution: `python benchmarks/learn/examiner_shares.py`.

Prints what was not named as expected, then the shares. The solutions are in tests/learn/corpus.
"""

import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from learn.corpus_files import read_corpus


def size_of_evidence(inputs: dict[str, object]) -> int:
    """The largest axis of the arrays of an input, its weight matrices aside."""
    arrays = [value for name, value in inputs.items() if isinstance(value, np.ndarray) and not name.startswith("w")]
    return max((max(np.shape(value), default=0) for value in arrays), default=0)


def main() -> None:
    counts: Counter[str] = Counter()
    wanted = sys.argv[1:]
    large: Counter[str] = Counter()
    sizes, seconds = [], []
    for solution in read_corpus():
        if wanted and solution.exercise not in wanted:
            continue
        started = time.perf_counter()
        verdict = solution.examine()
        seconds.append(time.perf_counter() - started)
        if not solution.mistakes:
            counts["right"] += 1
            if verdict.outcome != "solved":
                counts["right but rejected"] += 1
                print("REJECTED", solution.exercise, solution.note, verdict.sentences(), verdict.evidence)
            continue
        counts["wrong"] += 1
        if verdict.evidence is not None:
            sizes.append(size_of_evidence(verdict.evidence.inputs))
            large[solution.exercise] += sizes[-1] > 3
        named = tuple(sorted(verdict.variants))
        if verdict.outcome == "solved":
            counts["wrong but accepted"] += 1
            print("ACCEPTED", solution.exercise, solution.note)
        elif named == solution.mistakes or (solution.mistakes == ("?",) and not named):
            counts["named" if named else "unknown, as expected"] += 1
        elif named:
            counts["named wrongly"] += 1
            print("WRONGLY", solution.exercise, solution.note, "->", named)
        else:
            counts["unknown"] += 1
            print("UNKNOWN", solution.exercise, solution.note, "->", verdict.outcome, verdict.reason)
    for name, n in counts.most_common():
        print(f"{n:5d}  {name}")
    if sizes:
        print(f"{sum(size <= 3 for size in sizes) / len(sizes):.1%} of the evidence has no axis above 3")
        print(f"others: {dict(+large)}")
    seconds.sort()
    print(f"{np.mean(seconds):.3f} s per check in this process; 99 % within {seconds[int(0.99 * len(seconds))]:.2f} s")


if __name__ == "__main__":
    main()
