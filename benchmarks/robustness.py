"""Measure what a translation model does with text unlike its training text, as a markdown table.

    python benchmarks/robustness.py BUNDLE SOURCE REFERENCE
    python benchmarks/robustness.py BUNDLE TABLE            (a .tsv, .csv or .jsonl of pairs)

"before" is the raw search: the whole line as it is, an empty output if it is too long for the model. "after" is what
`predict` does: lines are normalized and translated sentence by sentence, and copied spans are put back. The rows are
lines of 3 to 8 joined sentences, lines in capitals, with extra spaces, with full-width letters and curly quotation
marks, with a URL; and the numbers, code and markup of the given text itself.
"""

import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from manyheads.bundle import Bundle, load
from manyheads.metrics import quick_score
from manyheads.tasks import Seq2Seq, Translations
from manyheads.text.markup.copyable_spans import copyable_spans
from manyheads.text.reading.readers import read_pairs
from manyheads.text.tokens.sentence_splitting import split_sentences

_N_LONG, _N_LINES = 1000, 500
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_URL = "https://example.org/a-b/{number}?id={number}"
_FULL_WIDTH = {code: chr(code + 0xFEE0) for code in range(0x21, 0x7F) if chr(code).isalnum()}

Predict = Callable[[Sequence[str]], Sequence[Translations]]
Pairs = Sequence[tuple[str, str]]


def main() -> None:
    """Print the table."""
    bundle = load(sys.argv[1])
    task = bundle.engine_task
    assert isinstance(task, Seq2Seq), "The bundle is not of the task seq2seq."
    language = task.settings.target_language
    rng = random.Random(1)
    pairs = [(source, target) for source, target in read_pairs(sys.argv[2:]) if source and target]
    single = [
        pair for pair in pairs if all(len(split_sentences(text)) == 1 and text[-1] in ".!?。！？" for text in pair)
    ]
    before, after = _raw(task, bundle), lambda texts: task.predict(texts, bundle.decode)

    def bleu(
        predict: Predict, chosen: Pairs, change: Callable[[str], str] = str, of: Callable[[str], str] = str
    ) -> float:
        texts = [one.line() for one in predict([change(source) for source, _ in chosen])]
        return quick_score("BLEU", texts, [of(target) for _, target in chosen], language)

    engine = task.engine_for(bundle.decode).name
    print(f"{sys.argv[1]}, {len(pairs):,} pairs, {len(single):,} of one sentence, engine {engine}\n")
    print("| input | lines | measure | before | after |\n| --- | ---: | --- | ---: | ---: |")
    plain = pairs[:_N_LINES]
    _row("as given", plain, "BLEU", bleu(before, plain), bleu(after, plain))
    if len(single) >= 8:
        _long_lines(single, before, after, language, rng)
    rows = [pair for pair in plain if not any(map(str.isdigit, pair[0]))]
    _row("in capitals", rows, "BLEU", *(bleu(predict, rows, str.upper, str.upper) for predict in (before, after)))
    for name, change in (
        ("extra, no-break and zero-width spaces", lambda text: _spaced(text, rng)),
        ("full-width letters and digits", lambda text: text.translate(_FULL_WIDTH)),
        ("curly quotation marks", _curly),
    ):
        changed = [(change(source), target) for source, target in plain]
        changed = [new for new, old in zip(changed, plain, strict=True) if new != old]
        if changed:
            _row(name, changed, "BLEU", bleu(before, changed), bleu(after, changed))
    with_url = [(_with_url(source, number), target) for number, (source, target) in enumerate(plain, 1001)]
    _copied("a URL at the end of the sentence", with_url, before, after, _spans)
    _copied("numbers that the reference repeats", pairs, before, after, _NUMBER.findall, only_repeated=True)
    _copied("code, markup, URLs that the reference repeats", pairs, before, after, _spans, only_repeated=True)


def _raw(task: Seq2Seq, bundle: Bundle) -> Predict:
    """Return the search without what prepares texts: that of a task that does not translate."""
    other = replace(task, settings=replace(task.settings, purpose="summary"))
    return lambda texts: other.predict([text if other.fits(text) else "" for text in texts], bundle.decode)


def _long_lines(single: Pairs, before: Predict, after: Predict, language: str, rng: random.Random) -> None:
    lines = [[rng.choice(single) for _ in range(rng.randint(3, 8))] for _ in range(_N_LONG)]
    joined = [tuple(_join([pair[side] for pair in line], is_target=side == 1) for side in (0, 1)) for line in lines]
    references = [target for _, target in joined]
    started = time.perf_counter()
    outputs = [predict([source for source, _ in joined]) for predict in (before, after)]
    sources = sorted({source for line in lines for source, _ in line})
    answers = {source: one.line() for source, one in zip(sources, after(sources), strict=True)}
    sentence_wise = [_join([answers[source] for source, _ in line], is_target=True) for line in lines]
    name = "3 to 8 sentences joined"
    _row(
        name,
        lines,
        "BLEU",
        *(quick_score("BLEU", [one.line() for one in own], references, language) for own in outputs),
    )
    _row(
        "— the same, sentence by sentence",
        lines,
        "BLEU",
        None,
        quick_score("BLEU", sentence_wise, references, language),
    )
    n_sentences = sum(map(len, lines))
    _row(
        name,
        lines,
        "% of sentences translated",
        # Without parts, by the number of sentences of the output; with parts, those whose translation is not empty.
        *(
            100 * sum(min(len(line), _n_translated(one)) for line, one in zip(lines, own, strict=True)) / n_sentences
            for own in outputs
        ),
    )
    _row(name, lines, "lines with a warning", *(float(sum(bool(one.warnings) for one in own)) for own in outputs))
    print(f"<!-- {time.perf_counter() - started:.0f} s -->", file=sys.stderr)


def _n_translated(one: Translations) -> int:
    if one.parts:
        return sum(one.answer[start:end].strip() != "" for _, _, start, end in one.parts)
    return len(split_sentences(one.line()))


def _copied(
    name: str,
    pairs: Pairs,
    before: Predict,
    after: Predict,
    spans: Callable[[str], list[str]],
    *,
    only_repeated: bool = False,
) -> None:
    wanted = [
        [span for span in spans(source) if not only_repeated or span in spans(target)] for source, target in pairs
    ]
    chosen = [(source, own) for (source, _), own in zip(pairs, wanted, strict=True) if own]
    n_spans = sum(len(own) for _, own in chosen)
    if not n_spans:
        return
    shares = []
    for predict in (before, after):
        answers = predict([source for source, _ in chosen])
        n_kept = sum(span in one.answer for (_, own), one in zip(chosen, answers, strict=True) for span in own)
        shares.append(100 * n_kept / n_spans)
    _row(name, chosen, f"% of {n_spans:,} intact", *shares)


def _spans(text: str) -> list[str]:
    return [text[start:end] for start, end in copyable_spans(text)]


def _row(name: str, lines: Sequence[object], measure: str, before: float | None, after: float) -> None:
    print(
        f"| {name} | {len(lines):,} | {measure} | {'' if before is None else f'{before:.1f}'} | {after:.1f} |",
        flush=True,
    )


def _join(texts: Sequence[str], *, is_target: bool) -> str:
    is_chinese = is_target and any(
        "\u3001" <= text[-1:] <= "\u9fff" or "\uff01" <= text[-1:] <= "\uffee" for text in texts
    )
    return ("" if is_chinese else " ").join(texts)


def _spaced(text: str, rng: random.Random) -> str:
    """Return a text with its spaces repeated or replaced, and spaces around it."""
    words = text.split(" ")
    spaces = [rng.choice((" ", "  ", "   ", "\u00a0", " \u200b")) for _ in words[1:]]
    return " " + "".join(word + space for word, space in zip(words, [*spaces, "  "], strict=True))


def _curly(text: str) -> str:
    return re.sub(r'"([^"]*)"', "“\\1”", text).replace("'", "’")


def _with_url(text: str, number: int) -> str:
    end = len(text.rstrip(".!?。！？"))
    return f"{text[:end]} {_URL.format(number=number)}{text[end:]}"


if __name__ == "__main__":
    main()
