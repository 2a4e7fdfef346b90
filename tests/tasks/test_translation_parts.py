"""Texts in parts: how they are divided, prepared, translated and joined."""

import json
from dataclasses import replace

import pytest
import torch

from manyheads.decode import DecodeSettings, EngineSelector
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks import Seq2Seq, Seq2SeqSettings
from manyheads.tasks.model_inputs import with_output
from manyheads.tasks.seq2seq.translation_parts import Part, Translation, join_candidates, part_spans, with_copied_spans
from manyheads.text.markup.copyable_spans import restore
from manyheads.text.tokens.tokenizer import Tokenizer, TokenizerSettings

ROWS = [
    ("The cat sleeps in the house.", "La chatte dort dans la maison."),
    ("Return ``None`` if Tom is here.", "Renvoie ``None`` si Tom est là."),
    ('He said "yes" to Anna.', 'Il dit "oui" à Anna.'),
    ("See https://x.org/a for more, it's big.", "Voyez https://x.org/a pour plus, c'est grand."),
] * 30
BEAM = DecodeSettings(beam=3, max_new_tokens=6)
TEXTS = [
    "The cat sleeps. Tom is here. He said yes!",
    "The cat sleeps.",
    "",
    "Return ``x`` or :class:`y`.  See https://x.org/b!\nTHE CAT SLEEPS IN BOSTON",
    "the house " * 40,
]


def make_task(placeholders: int = 0) -> Seq2Seq:
    """An untrained translator for rows of one sentence."""
    torch.manual_seed(3)
    lines = [text for row in ROWS for text in row]
    tokenizer = Tokenizer.train(lines, TokenizerSettings(kind="bpe", vocab_size=340, placeholders=placeholders))
    model = Transformer(
        ModelSettings.preset(
            "tiny", vocab_size=tokenizer.vocab_size, width=16, feed_forward_width=32, n_encoder_layers=1,
            n_decoder_layers=1, max_length=64,
        )
    )  # fmt: skip
    settings = Seq2SeqSettings(source_language="en", target_language="fr")
    return Seq2Seq.create(model.eval(), tokenizer, settings, ROWS)


def test_metadata_is_restored() -> None:
    task = make_task()
    assert task.profile is not None
    assert task.profile.max_sentences == 1
    assert task.longest_source == max(len(task.tokenizer.encode(row[0])) for row in ROWS)
    metadata = json.loads(json.dumps(task.metadata()))
    restored = Seq2Seq.restore(task.model, task.tokenizer, task.settings, metadata)
    assert restored.metadata() == task.metadata()
    assert restored.profile == task.profile
    summary = Seq2Seq.create(task.model, task.tokenizer, Seq2SeqSettings(purpose="summary"), ROWS)
    assert summary.profile is None


@pytest.mark.parametrize("placeholders", [0, 8])
@pytest.mark.parametrize("method", ["beam", "greedy", "sample"])
def test_batched_equals_single_and_all_engines_agree(placeholders: int, method: str) -> None:
    task = make_task(placeholders)
    how = replace(BEAM, method=method)  # type: ignore[arg-type]
    together = task.predict(TEXTS, how)
    for index, text in enumerate(TEXTS):
        [alone] = task.predict([text], how, index)
        assert [one.text for one in alone.candidates] == [one.text for one in together[index].candidates]
        assert (alone.parts, alone.warnings, alone.missing) == tuple(
            getattr(together[index], name) for name in ("parts", "warnings", "missing")
        )
    native = task.with_engine(EngineSelector("native")).predict(TEXTS, how)
    assert [one.answer for one in native] == [one.answer for one in together]
    assert [one.parts for one in native] == [one.parts for one in together]


def test_text_as_in_training_is_read_as_it_is() -> None:
    """Without the profile, as in bundles of earlier versions, the predictions are the same."""
    task = make_task()
    old = replace(task, profile=None, longest_source=None, min_length_ratio=None)
    texts = [row[0] for row in ROWS[:3]]
    assert [one.candidates for one in task.predict(texts, BEAM)] == [one.candidates for one in old.predict(texts, BEAM)]
    assert not any(one.parts for one in task.predict(texts, BEAM))


def test_parts_are_translated_like_texts() -> None:
    task = make_task()
    [whole] = task.predict(TEXTS[:1], BEAM)
    sentences = ["The cat sleeps.", "Tom is here.", "He said yes!"]
    assert [TEXTS[0][part[0] : part[1]] for part in whole.parts] == sentences
    apart = [one.answer for one in task.predict(sentences, BEAM)]
    assert [whole.answer[part[2] : part[3]] for part in whole.parts] == apart
    assert whole.answer == " ".join(apart)


def test_several_sentences_are_kept_together_if_training_texts_have_several() -> None:
    task = make_task()
    rows = [(f"{a} Tom is here.", f"{b} Tom est là.") for a, b in ROWS]
    several = Seq2Seq.create(task.model, task.tokenizer, task.settings, rows)
    text = "The cat sleeps. Tom is here."
    assert [len(part) for part in (several._parts([text])[0], task._parts([text])[0])] == [1, 2]
    assert len(several._parts([f"{text} Tom."])[0]) == 3
    old = replace(task, profile=None, longest_source=None)
    assert len(old._parts([text])[0]) == 1  # by length only
    assert len(old._parts([text * 20])[0]) > 1


def test_what_the_model_reads() -> None:
    task, copying = make_task(), make_task(placeholders=8)
    [part] = task._parts(["  THE  CAT\u00a0SLEEPS WITH ANNA."])[0]
    assert (part.source, part.is_upper) == ("The cat sleeps with Anna.", True)
    assert part.finish("la chatte") == "LA CHATTE"
    [part] = task._parts(["See (https://x.org/b) and ``x``."])[0]
    assert (part.source, part.aside) == ("See and ``x``.", ["https://x.org/b"])
    assert part.finish("Voyez ``x``.") == "Voyez ``x`` https://x.org/b."
    assert part.missing("Voyez https://x.org/b") == ["``x``"]
    [part] = copying._parts(["SEE https://x.org/b AND ``x``."])[0]
    first, second = part.assigned.values()
    assert part.source == f"See {first} and {second}."
    assert part.finish(f"voyez {second}, {first}") == "VOYEZ ``x``, https://x.org/b"


def test_text_of_nothing_but_a_url_is_copied() -> None:
    [prediction] = make_task().predict(["https://x.org/b"], replace(BEAM, n_best=2))
    assert [one.text for one in prediction.candidates] == ["https://x.org/b"] * 2
    assert not prediction.warnings


def test_lost_spans_and_short_translations_are_reported() -> None:
    task = make_task()
    how = replace(BEAM, max_new_tokens=1)
    [prediction] = task.predict(["Return ``x`` to Tom in the house. Return ``y`` now."], how)
    assert prediction.missing == ["``x``", "``y``"]
    assert {"missing", "short"} <= set(prediction.warnings)
    summary = replace(task, settings=Seq2SeqSettings(purpose="summary"))
    [prediction] = summary.predict(["Return ``x`` to Tom in the house."], how)
    assert not {"missing", "short"} & set(prediction.warnings)


def test_candidate_with_all_spans_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task()
    text = "Return ``None`` if Tom is here."
    plain = task.predict([text], replace(BEAM, beam=8, n_best=8))[0].candidates
    last = plain[-1].text
    monkeypatch.setattr(Part, "missing", lambda part, output: [] if output == last else ["``None``"])
    [prediction] = task.predict([text], replace(BEAM, beam=8, n_best=2))
    assert [one.text for one in prediction.candidates] == [last, plain[0].text]
    assert prediction.missing == []


def test_encoded_rows_have_placeholders() -> None:
    task = make_task(placeholders=8)
    sources, targets = Seq2Seq.encode_rows(ROWS[:2], task.tokenizer, task.settings)
    decoded = [task.tokenizer.decode_batch(side) for side in (sources, targets)]
    assert [side[0] for side in decoded] == list(ROWS[0])
    [symbol] = [symbol for symbol in task.tokenizer.placeholders.symbols if symbol in decoded[0][1]]
    assert [side[1] for side in decoded] == [f"Return {symbol} if Tom is here.", f"Renvoie {symbol} si Tom est là."]


def test_lens_reads_placeholders_with_the_spans_they_stand_for() -> None:
    task = make_task(placeholders=8)
    source, target = "Return ``None`` if Tom.", "Renvoie ``None``."
    model_input = task.model_input(source, target)
    tokens = [token for token in (*model_input.source, *model_input.target) if token.text.startswith("⟦")]
    assert len({token.id for token in tokens}) == 1
    assert [source[tokens[0].start : tokens[0].end], target[tokens[1].start : tokens[1].end]] == ["``None``"] * 2
    assert [list(tokens) for tokens in task.lens_examples.tokenize(task, [source, target])] == [
        list(model_input.source[:-1]),
        list(model_input.target[1:]),
    ]


def test_lens_shows_the_copied_span_in_the_answer() -> None:
    task = make_task(placeholders=8)
    output = "Il dit ⟦1⟧ à Tom."
    ids = task.tokenizer.encode(output)
    written = with_output(task.model_input("``x``"), task.tokenizer, output, ids, has_ended=True)
    shown = with_copied_spans(written, restore(output, {"``x y``": "⟦1⟧"}))
    assert shown.answer == "Il dit ``x y`` à Tom."
    assert "".join(shown.answer[token.start : token.end] for token in shown.target) == shown.answer
    assert [shown.answer[token.start : token.end] for token in shown.target if "⟦" in token.text] == ["``x y``"]
    assert shown.last is not None
    assert shown.last.start == len(shown.answer)


def test_best_combinations_of_candidates() -> None:
    text = "One. Two.\n\nThree."
    parts = [Part(0, 4, "One."), Part(5, 9, "Two."), Part(11, 17, "Three.")]
    candidates = [
        [Translation("A.", -1.0, -1.0, True), Translation("B.", -2.0, -2.0, True)],
        [Translation("C.", -1.0, -0.5, True), Translation("D.", -4.0, -1.0, False)],
        [Translation("E.", -1.0, -3.0, True)],
    ]
    best = join_candidates(text, parts, candidates, 3, are_samples=False)
    assert [one.text for one in best] == ["A. C.\n\nE.", "A. D.\n\nE.", "B. C.\n\nE."]
    assert (best[1].log_probability, best[1].score, best[1].finished) == (-6.0, pytest.approx(-5 / 3), False)
    samples = join_candidates(text[:9], parts[:2], candidates[:2], 2, are_samples=True)
    assert [one.text for one in samples] == ["A. C.", "B. D."]
    assert part_spans(text, parts, [own[0] for own in candidates]) == [(0, 4, 0, 2), (5, 9, 3, 5), (11, 17, 7, 9)]


def test_chinese_is_joined_without_spaces() -> None:
    parts = [Part(0, 4, "One."), Part(5, 9, "Two."), Part(10, 12, "A.")]
    candidates = [[Translation(text, 0.0, 0.0, True)] for text in ("一。", "", "二。")]
    [joined] = join_candidates("One. Two. A.", parts, candidates, 1, are_samples=False)
    assert joined.text == "一。二。"
    [spaced] = join_candidates(
        "一。二。", [Part(0, 2, ""), Part(2, 4, "")], [[Translation(t, 0.0, 0.0, True)] for t in ("A.", "B.")], 1,
        are_samples=False,
    )  # fmt: skip
    assert spaced.text == "A. B."


@pytest.mark.parametrize(
    "layout",
    [
        "{}",
        "  {}\t ",
        "{}\n\n\n{}\n",
        "{}\r\n\r\n\t{}\r\n",
        "- {}\n  * {}\n    • {}",
        "1. {}\n2. {}\n\n(a) {}\n[x] {}",
        "# {}\n\n> {}\n> {}\n---\n{}\u2028{}",
        "{}  {}\n{} {}",
    ],
)
def test_layout_is_kept(layout: str) -> None:
    task = make_task()
    n_texts = layout.count("{}")
    sources = ["The cat sleeps.", "Tom is here.", "He said yes!", "The house", "Return now."][:n_texts]
    translations = [one.answer for one in task.predict(sources, BEAM)]
    [whole] = task.predict([layout.format(*sources)], replace(BEAM, n_best=2))
    assert whole.answer == layout.format(*translations)
    assert [whole.answer[part[2] : part[3]] for part in whole.parts] == (translations if layout != "{}" else [])
    assert len(whole.candidates) == 2


def test_lines_are_kept_apart_even_if_training_texts_have_several_sentences() -> None:
    task = make_task()
    rows = [(f"{a} Tom is here.", f"{b} Tom est là.") for a, b in ROWS]
    several = Seq2Seq.create(task.model, task.tokenizer, task.settings, rows)
    assert len(several._parts(["The cat sleeps.\nTom is here."])[0]) == 2


def test_joining_many_parts_takes_linear_time() -> None:
    """20,000 parts of 50 characters; joining the text before each would copy 10 GB."""
    line = "The cat sleeps in the house, and Tom is not here.\n"
    text = line * 20_000
    parts = [Part(start, start + len(line) - 1, "") for start in range(0, len(text), len(line))]
    candidates = [[Translation(line[:-1], 0.0, 0.0, True)] for _ in parts]
    [joined] = join_candidates(text, parts, candidates, 1, are_samples=False)
    assert joined.text == text


def test_a_text_without_its_pair_is_tokenized_as_it_is() -> None:
    task = make_task(8)
    text = "See https://x.org/b!"
    assert task.lens_examples.tokenize(task, [text]) == task.tokenizer.tokenize_batch([text])
    source, target = task.lens_examples.tokenize(task, [text, "Voir https://x.org/b!"])
    placeholders = [
        {one.id for one in tokens}
        & {task.tokenizer.encode(symbol)[-1] for symbol in task.tokenizer.placeholders.symbols}
        for tokens in (source, target)
    ]
    assert placeholders[0] == placeholders[1] != set()  # what both have in common is copied
