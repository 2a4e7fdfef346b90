"""Has a model collapsed? Its translations tell: all alike, copies of the source, endless repetition, or nothing."""

from collections import Counter
from collections.abc import Sequence

from manyheads.doctor.findings import Finding, Verdict, excerpt

_FIX = (
    "The model has not learnt to look at the source: train longer, lower train.learning_rate, and run doctor on its"
    " recipe (languages, alignment, overfit one batch). 模型输出塌缩：请延长训练、降低学习率，并检查数据。"
)
_MIN_REPEATS = 4  # so often in a row is a repetition


def check_outputs(check: str, sources: Sequence[str], outputs: Sequence[str]) -> Finding:
    """What is wrong with the translations of different sentences, as a whole."""
    pairs = list(dict(zip(sources, outputs, strict=True)).items())
    total = len(pairs)
    same = Counter(output for _, output in pairs if output.strip()).most_common(1)
    commonest, n_same = same[0] if same else ("", 0)
    empty = [source for source, output in pairs if not output.strip()]
    copied = [source for source, output in pairs if output.strip() and output.split() == source.split()]
    repetitive = [output for _, output in pairs if is_repetitive(output)]
    n_identical = n_same if n_same > 1 else 0
    worst = max(n_identical, len(empty), len(copied), len(repetitive)) / max(total, 1)
    verdict: Verdict = "good" if worst <= 0.15 else "warning" if worst <= 0.4 else "bad"
    message = (
        f"of {total} different sentences {n_identical} have the same translation, {len(copied)} are copied,"
        f" {len(repetitive)} go round in circles, {len(empty)} are empty."
    )
    if verdict == "good":
        return Finding(check, verdict, message)
    shown = {
        f"{n_identical} times: {excerpt(commonest)}": n_identical,
        **{f"in circles: {excerpt(output)}": len(repetitive) for output in repetitive[:1]},
        **{f"copied: {excerpt(source)}": len(copied) for source in copied[:1]},
        **{f"empty: {excerpt(source)}": len(empty) for source in empty[:1]},
    }
    examples = tuple(text for text, count in shown.items() if count / total > 0.15)
    return Finding(check, verdict, message, examples[:3], _FIX)


def is_repetitive(text: str) -> bool:
    """Whether a stretch comes four times in a row: "the cat the cat the cat the cat", "今天今天今天今天"."""
    words = text.split() if len(text.split()) >= _MIN_REPEATS else list(text)
    for length in range(1, len(words) // _MIN_REPEATS + 1):
        run = 0
        for here, ahead in zip(words, words[length:], strict=False):
            run = run + 1 if here == ahead else 0
            if run >= length * (_MIN_REPEATS - 1):
                return True
    return False
