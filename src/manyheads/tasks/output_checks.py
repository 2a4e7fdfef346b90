"""Output collapse: translations that are all the same, copies of the source, repetitive or empty."""

from collections import Counter
from collections.abc import Sequence

from manyheads.language import pick
from manyheads.tasks.findings import Finding, Verdict, excerpt

_MIN_REPEATS = 4  # in a row


def check_outputs(check: str, sources: Sequence[str], outputs: Sequence[str]) -> Finding:
    """Check the translations of different sentences as a whole."""
    pairs = list(dict(zip(sources, outputs, strict=True)).items())
    total = len(pairs)
    same = Counter(output for _, output in pairs if output.strip()).most_common(1)
    most_common, n_same = same[0] if same else ("", 0)
    empty = [source for source, output in pairs if not output.strip()]
    copied = [source for source, output in pairs if output.strip() and output.split() == source.split()]
    repetitive = [output for _, output in pairs if is_repetitive(output)]
    n_identical = n_same if n_same > 1 else 0
    worst = max(n_identical, len(empty), len(copied), len(repetitive)) / max(total, 1)
    verdict: Verdict = "good" if worst <= 0.15 else "warning" if worst <= 0.4 else "bad"
    message = pick(
        f"of {total} different sentences, {n_identical} have the same translation, {len(copied)} are copied,"
        f" {len(repetitive)} are repetitive, {len(empty)} are empty.",
        f"{total} 个不同的句子中，译文相同的 {n_identical} 个，照抄原文的 {len(copied)} 个，"
        f"重复循环的 {len(repetitive)} 个，为空的 {len(empty)} 个。",
    )
    if verdict == "good":
        return Finding(check, verdict, message)
    shown = {
        f"{n_identical} ×: {excerpt(most_common)}": n_identical,
        **{f"{pick('repetitive', '重复')}: {excerpt(output)}": len(repetitive) for output in repetitive[:1]},
        **{f"{pick('copied', '照抄')}: {excerpt(source)}": len(copied) for source in copied[:1]},
        **{f"{pick('empty', '为空')}: {excerpt(source)}": len(empty) for source in empty[:1]},
    }
    examples = tuple(text for text, count in shown.items() if count / total > 0.15)
    fix = pick(
        "The model ignores its source: train longer, lower train.learning_rate, and run doctor on the recipe"
        " (languages, alignment, overfit one batch).",
        "模型没有利用源文：请延长训练、降低 train.learning_rate，并对配方运行 doctor（检查语言、对齐和单批过拟合）。",
    )
    return Finding(check, verdict, message, examples[:3], fix)


def is_repetitive(text: str) -> bool:
    """Return whether a phrase occurs four times in a row: "the cat the cat the cat the cat", "今天今天今天今天"."""
    words = text.split() if len(text.split()) >= _MIN_REPEATS else list(text)
    for length in range(1, len(words) // _MIN_REPEATS + 1):
        run = 0
        for here, ahead in zip(words, words[length:], strict=False):
            run = run + 1 if here == ahead else 0
            if run >= length * (_MIN_REPEATS - 1):
                return True
    return False
