"""How many poems a language model ends in the right form, from the first lines of poems it never saw.

    python benchmarks/poems.py runs/tang-poems/bundle FOLDER/tang.tsv [SHOWN]

A poem has the right form when all its lines are as long as the first, of 5 or 7 characters, when there are 4, 8 or
another even number of them, and when it was ended rather than cut off. The first lines are those of the last 2 % of the
poems, which the recipe holds out, as far as they are of 5 or 7 characters themselves.
"""

import re
import sys
from pathlib import Path

from manyheads.bundle import load

_PUNCTUATION = re.compile(r"[，。！？；]")


def lines_of(poem: str) -> list[str]:
    """The lines of a poem without the punctuation between them."""
    return [line for line in _PUNCTUATION.split(poem) if line]


def has_form(poem: str, wanted: int) -> bool:
    """Whether every line has the wanted length, and lines come in couplets."""
    lines = lines_of(poem)
    return len(lines) >= 4 and len(lines) % 2 == 0 and all(len(line) == wanted for line in lines)


def main() -> None:
    """Count, and show some."""
    bundle = load(Path(sys.argv[1]))
    n_shown = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    rows = Path(sys.argv[2]).read_text(encoding="utf-8").rstrip("\n").split("\n")
    poems = [row.split("\t")[2] for row in rows]
    first_lines = [poem[: len(lines_of(poem)[0]) + 1] for poem in poems[-len(poems) // 50 :] if lines_of(poem)]
    prompts = [line for line in dict.fromkeys(first_lines) if len(line) - 1 in (5, 7)]
    found = bundle.predictions(prompts)
    right, regular = [], 0
    for prompt, generation in zip(prompts, found, strict=True):
        poem = prompt + generation.answer
        is_right = generation.candidates[0].finished and has_form(poem, len(prompt) - 1)
        regular += is_right and len(lines_of(poem)) in (4, 8)
        right.append(is_right)
    n = len(prompts)
    sys.stdout.write(
        f"{sum(right)} of {n} in the right form ({100 * sum(right) / n:.1f} %), {regular} of 4 or 8 lines\n\n"
    )
    for number in range(0, n, max(1, n // n_shown)):
        sys.stdout.write(f"{'✓' if right[number] else '✗'} {prompts[number]}{found[number].answer}\n")


if __name__ == "__main__":
    main()
