"""Measure how many poems a language model completes in regular form, given first lines it was not trained on.

    python benchmarks/poems.py runs/tang-poems/bundle FOLDER/tang.tsv [SHOWN]

A poem is regular if all lines have the length of the first, 5 or 7 characters, if their number is even and at least 4,
and if the model ended it. The prompts are the first lines of 5 or 7 characters of the last 2 % of the poems, which
the recipe holds out.
"""

import re
import sys
from pathlib import Path

from manyheads.bundle import load

_PUNCTUATION = re.compile(r"[，。！？；]")


def lines_of(poem: str) -> list[str]:
    """Return the lines of a poem without punctuation."""
    return [line for line in _PUNCTUATION.split(poem) if line]


def is_regular(poem: str, line_length: int) -> bool:
    """Return whether every line has this length, and lines come in couplets."""
    lines = lines_of(poem)
    return len(lines) >= 4 and len(lines) % 2 == 0 and all(len(line) == line_length for line in lines)


def main() -> None:
    """Count the regular poems, and print some."""
    bundle = load(Path(sys.argv[1]))
    n_shown = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    rows = Path(sys.argv[2]).read_text(encoding="utf-8").rstrip("\n").split("\n")
    poems = [row.split("\t")[2] for row in rows]
    first_lines = [poem[: len(lines_of(poem)[0]) + 1] for poem in poems[-len(poems) // 50 :] if lines_of(poem)]
    prompts = [line for line in dict.fromkeys(first_lines) if len(line) - 1 in (5, 7)]
    generations = bundle.predictions(prompts)
    regular, n_classic = [], 0
    for prompt, generation in zip(prompts, generations, strict=True):
        poem = prompt + generation.answer
        finished = generation.candidates[0].finished
        regular.append(finished and is_regular(poem, len(prompt) - 1))
        n_classic += regular[-1] and len(lines_of(poem)) in (4, 8)
    n = len(prompts)
    sys.stdout.write(
        f"{sum(regular)} of {n} are regular ({100 * sum(regular) / n:.1f} %), {n_classic} have 4 or 8 lines\n\n"
    )
    for number in range(0, n, max(1, n // n_shown)):
        sys.stdout.write(f"{'✓' if regular[number] else '✗'} {prompts[number]}{generations[number].answer}\n")


if __name__ == "__main__":
    main()
