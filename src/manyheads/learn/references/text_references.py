"""References of the chapter on text and scores: BLEU and byte-pair encoding."""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from manyheads.learn.references.reference import NO_FAULTS, Draw, Faults, Inputs, Reference

Words = list[str]


def _ngrams(words: Words, n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def bleu(hypotheses: list[Words], references: list[Words], *, faults: Faults = NO_FAULTS) -> float:
    """Corpus BLEU with n-grams of 1 to 4, one reference each, between 0 and 100."""
    if "roles-swapped" in faults:
        hypotheses, references = references, hypotheses
    if "mean-of-sentences" in faults:
        inner = Faults(faults - {"mean-of-sentences"})
        scores = [bleu([one], [other], faults=inner) for one, other in zip(hypotheses, references, strict=True)]
        return sum(scores) / len(scores)
    most = faults.pick(4, up_to_two=2, up_to_three=3, one_only=1)
    orders = [4] if "four-only" in faults else range(1, most + 1)
    precisions = []
    for n in orders:
        matches = total = 0
        for words, right in zip(hypotheses, references, strict=True):
            found, wanted = _ngrams(words, n), _ngrams(right, n)
            if "not-clipped" in faults:
                matches += sum(count for gram, count in found.items() if gram in wanted)
            elif "sets" in faults:
                matches += len(found.keys() & wanted.keys())
            else:
                matches += sum((found & wanted).values())
            if "sets" in faults:
                total += len(found)
            else:
                total += sum((wanted if "recall" in faults else found).values())
        if "smoothed" in faults:
            matches, total = matches + 1, total + 1
        precisions.append(matches / total if total else 0.0)
    if "arithmetic-mean" in faults:
        mean = sum(precisions) / len(precisions)
    elif "product" in faults:
        mean = math.prod(precisions)
    else:
        mean = math.prod(precisions) ** (1 / len(precisions))
    length, wanted_length = sum(map(len, hypotheses)), sum(map(len, references))
    if not length:
        return 0.0
    penalty = 1.0 if length >= wanted_length else math.exp(1 - wanted_length / length)
    penalty = faults.pick(
        penalty,
        no_brevity_penalty=1.0,
        brevity_ratio=min(1.0, length / wanted_length),
        brevity_inverted=1.0 if length <= wanted_length else math.exp(1 - length / wanted_length),
        brevity_always=math.exp(1 - wanted_length / length),
        brevity_ratio_inverted=1.0 if length >= wanted_length else math.exp(1 - length / wanted_length),
    )
    return (1 if "fraction" in faults else 100) * penalty * mean


def bleu_cases(_draw: Draw) -> Iterator[Inputs]:
    """Words are letters; shorter, longer and repeated ones."""
    for pairs in (
        ["abcd abcd"],
        ["abcde abcdf"],
        ["abcd abcdef"],
        ["abcdef abcd"],
        ["abcde abcdabcde"],
        ["aaaaab aaaabb"],
        ["abcdabcd abcdefgh"],
        ["ab abcd", "abcdefg abcdefg"],
        ["abcde abcde", "xabcdq zabcde"],
        ["abce abcd"],
    ):
        hypotheses, references = zip(*(pair.split() for pair in pairs), strict=True)
        yield {"hypotheses": [list(one) for one in hypotheses], "references": [list(one) for one in references]}


def merges(counts: dict[str, int], n_merges: int, *, faults: Faults = NO_FAULTS) -> list[tuple[str, str]]:
    """Learn byte-pair merges: the most frequent pair each time, of equal ones the alphabetically first."""
    end = [] if "no-end-mark" in faults else ["_"]
    words = {word: ([*end, *word] if "mark-first" in faults else [*word, *end]) for word in counts}
    if "mark-joined" in faults:
        words = {word: [*word[:-1], word[-1] + "_"] for word in counts}
    found: list[tuple[str, str]] = []
    for _step in range(n_merges):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in words.items():
            times = 1 if "counts-ignored" in faults else counts[word]
            inside = list(pairwise(parts))
            for pair in set(inside) if "once-per-word" in faults else inside:
                pairs[pair] += times
        if "across-words" in faults:
            row = [part for parts in words.values() for part in parts]
            pairs = Counter(pairwise(row))
        if not pairs:
            break
        if "rarest" in faults:
            best = min(pairs, key=lambda pair: (pairs[pair], pair))
        elif "last-of-equals" in faults:
            best = max(pairs, key=lambda pair: (pairs[pair], pair))
        elif "first-seen" in faults:
            best = max(pairs, key=lambda pair: pairs[pair])
        elif "by-length" in faults:
            best = max(sorted(pairs), key=lambda pair: pairs[pair] * len("".join(pair)))
        elif "alphabetical" in faults:
            best = min(pairs)
        else:
            best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        if "stops-at-one" in faults and pairs[best] < 2:
            break
        found.append(best)
        if "never-merged" not in faults:
            words = {word: _merge(parts, best, faults) for word, parts in words.items()}
    if "joined" in faults:
        return ["".join(pair) for pair in found]  # type: ignore[misc]
    return found[::-1] if "reversed" in faults else found


def _merge(parts: list[str], pair: tuple[str, str], faults: Faults) -> list[str]:
    merged: list[str] = []
    i, is_done = 0, False
    while i < len(parts):
        is_pair = i + 1 < len(parts) and (parts[i], parts[i + 1]) == pair
        if "either-order" in faults and i + 1 < len(parts):
            is_pair |= (parts[i + 1], parts[i]) == pair
        if is_pair and not is_done:
            merged.append(parts[i] + parts[i + 1])
            is_done = "first-only" in faults
            i += 1 if "overlapping" in faults else 2
        else:
            merged.append(parts[i])
            i += 1
    return merged


def merges_cases(draw: Draw) -> Iterator[Inputs]:
    """Short words of few letters, so that pairs repeat, overlap and tie."""
    yield {"counts": {"ab": 2, "b": 1}, "n_merges": 1}
    yield {"counts": {"ab": 1, "ac": 3}, "n_merges": 2}
    yield {"counts": {"aaa": 1}, "n_merges": 2}
    yield {"counts": {"ba": 1, "ab": 1}, "n_merges": 3}
    yield {"counts": {"abab": 2, "ab": 1}, "n_merges": 3}
    yield {"counts": {"aaaa": 2, "aab": 2}, "n_merges": 4}
    yield {"counts": {"abcabc": 1, "bca": 4, "cab": 2}, "n_merges": 5}
    for _number in range(4):
        words = ["".join(draw.random.choice(list("abc"), draw.random.integers(2, 6))) for _word in range(4)]
        yield {"counts": {word: int(draw.random.integers(1, 5)) for word in words}, "n_merges": 6}


REFERENCES = {"bleu": Reference(bleu, bleu_cases), "byte-pairs": Reference(merges, merges_cases)}
