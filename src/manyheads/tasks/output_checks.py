"""Output collapse: translations that are all the same, copies of the source, repetitive or empty."""

from collections import Counter
from collections.abc import Sequence

from manyheads.language import pick
from manyheads.messages import _
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
    message = _(
        "of {total} different sentences, {n_identical} have the same translation, {n_copied} are copied, "
        "{n_repetitive} are repetitive, {n_empty} are empty.",
        total=total,
        n_identical=n_identical,
        n_copied=len(copied),
        n_repetitive=len(repetitive),
        n_empty=len(empty),
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
    fix = _(
        "The model ignores its source: train longer, lower train.learning_rate, and run doctor on the recipe "
        "(languages, alignment, overfit one batch)."
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
