"""Has a model collapsed? Its translations tell: all alike, copies of the source, endless repetition, or nothing."""

from collections import Counter
from collections.abc import Sequence

from manyheads.doctor.findings import Finding, Verdict, excerpt

_REMEDY = (
    "The model has not learnt to look at the source: train longer, lower train.learning_rate, and run doctor on its"
    " recipe (languages, alignment, one batch by heart). 模型输出塌缩：请延长训练、降低学习率，并检查数据。"
)
_ROUNDS = 4  # so often in a row is a repetition


def check_outputs(check: str, sources: Sequence[str], outputs: Sequence[str]) -> Finding:
    """What is wrong with the translations of different sentences, as a whole."""
    pairs = list(dict(zip(sources, outputs, strict=True)).items())
    total = len(pairs)
    same = Counter(output for _, output in pairs if output.strip()).most_common(1)
    commonest, n_same = same[0] if same else ("", 0)
    empty = [source for source, output in pairs if not output.strip()]
    copied = [source for source, output in pairs if output.strip() and output.split() == source.split()]
    circling = [output for _, output in pairs if repeats(output)]
    n_alike = n_same if n_same > 1 else 0
    worst = max(n_alike, len(empty), len(copied), len(circling)) / max(total, 1)
    verdict: Verdict = "good" if worst <= 0.15 else "warning" if worst <= 0.4 else "bad"
    told = (
        f"of {total} different sentences {n_alike} have the same translation, {len(copied)} are copied,"
        f" {len(circling)} go round in circles, {len(empty)} are empty."
    )
    if verdict == "good":
        return Finding(check, verdict, told)
    shown = {
        f"{n_alike} times: {excerpt(commonest)}": n_alike,
        **{f"in circles: {excerpt(output)}": len(circling) for output in circling[:1]},
        **{f"copied: {excerpt(source)}": len(copied) for source in copied[:1]},
        **{f"empty: {excerpt(source)}": len(empty) for source in empty[:1]},
    }
    examples = tuple(text for text, count in shown.items() if count / total > 0.15)
    return Finding(check, verdict, told, examples[:3], _REMEDY)


def repeats(text: str) -> bool:
    """Whether a stretch comes four times in a row: "the cat the cat the cat the cat", "今天今天今天今天"."""
    words = text.split() if len(text.split()) >= _ROUNDS else list(text)
    for length in range(1, len(words) // _ROUNDS + 1):
        run = 0
        for here, ahead in zip(words, words[length:], strict=False):
            run = run + 1 if here == ahead else 0
            if run >= length * (_ROUNDS - 1):
                return True
    return False
