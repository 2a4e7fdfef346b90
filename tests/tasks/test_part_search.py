"""Searches over the parts of texts: what is decoded again, and how."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from manyheads.decode import DecodeSettings, EngineSelector, Hypothesis, TorchEngine
from manyheads.tasks import Seq2Seq
from manyheads.tasks.seq2seq.translation_search import PartSearch
from manyheads.text.tokens.tokenizer import EOS

from tasks import test_translation_parts

HOW = DecodeSettings(beam=3, max_new_tokens=20)
TEXTS = [
    "Return ``x`` or :class:`y`. See https://x.org/b!",
    "The cat sleeps.",
    "",
    "``a`` ``b`` ``c`` and ``a`` in the house.",
    "SEE ``x``.",
]


def make_task(placeholders: int = 8, *, loops: bool = False) -> Seq2Seq:
    """An untrained translator whose outputs end; if it loops, after one token many times."""
    task = test_translation_parts.make_task(placeholders)
    weight, norm = task.model.output.weight, task.model.decoder[-1].feed_forward_sublayer.norm
    directions = torch.nn.functional.normalize(weight[[EOS, task.tokenizer.encode("chatte")[-1]]], dim=1)
    with torch.no_grad():
        if loops:
            norm.weight.zero_()
            norm.bias.copy_(40 * directions[0] + 60 * directions[1])
        else:
            norm.bias.add_(3 * directions[0])
    return task


@pytest.mark.parametrize("engine", ["torch", "native"])
def test_every_placeholder_is_copied_as_often_as_in_the_source(engine: str) -> None:
    task = make_task().with_engine(EngineSelector(engine))
    off = task.predict(TEXTS, replace(HOW, copy_guard=False))
    assert [bool(one.missing) for one in off] == [True, False, False, True, True]
    guarded = task.predict(TEXTS, HOW)
    assert [list(one.missing) for one in guarded] == [[]] * 5
    assert not any("missing" in one.warnings for one in guarded)
    assert all(candidate.finished for candidate in guarded[0].candidates)
    for text, count in (("``a``", 2), ("``b``", 1), ("``c``", 1), ("``x``", 0)):
        assert guarded[3].answer.count(text) == count
    assert guarded[1] == off[1]
    if engine == "native":
        assert [one.answer for one in guarded] == [one.answer for one in make_task().predict(TEXTS, HOW)]
    for index, text in enumerate(TEXTS):
        [alone] = task.predict([text], HOW, index)
        assert alone.answer == guarded[index].answer


def test_all_candidates_copy_every_placeholder() -> None:
    [prediction] = make_task().predict(TEXTS[3:4], replace(HOW, n_best=3))
    assert len({one.text for one in prediction.candidates}) == 3
    assert all(span in one.text for one in prediction.candidates for span in ("``a``", "``b``", "``c``"))


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
def test_only_beam_search_is_guarded(method: str) -> None:
    """Greedy search and samples are what they are called; a beam of 1 is greedy search."""
    how = replace(HOW, method=method, beam=1)  # type: ignore[arg-type]
    task = make_task()
    on, off = (task.predict(TEXTS, replace(how, copy_guard=is_on)) for is_on in (True, False))
    assert on == off
    assert on[0].missing


def test_output_is_kept_if_there_is_no_room_for_all_placeholders() -> None:
    how = replace(HOW, max_new_tokens=3)
    [prediction] = make_task().predict(["See ``a`` or ``b`` or ``c`` or ``d``."], how)
    assert prediction.missing
    assert "missing" in prediction.warnings


class ListEngine:
    """An engine that always finds the same outputs."""

    name, max_batch_tokens = "list", 1000

    def __init__(self, outputs: Sequence[Sequence[int]]) -> None:
        self.hypotheses = [Hypothesis(tuple(ids), -1.0, -1.0, finished=True) for ids in outputs]

    def unsupported(self, settings: DecodeSettings) -> str:
        return ""

    def generate(
        self, sources: Sequence[Sequence[int]], settings: DecodeSettings, streams: Sequence[int]
    ) -> list[list[Hypothesis]]:
        return [self.hypotheses[: settings.n_best] for _ in sources]


def test_hypothesis_with_each_placeholder_once_is_preferred() -> None:
    task = make_task()
    tokenizer, [[part]] = task.tokenizer, task.part_reader.parts(["Return ``x`` now."])
    [x] = part.assigned.values()
    other = next(symbol for symbol in tokenizer.placeholders.symbols if symbol != x)
    outputs = [tokenizer.encode(text) for text in (f"{x} {x}", "Tom", f"{x} {other}", f"Tom {x}", f"{x} Tom")]
    engine, torch_engine = ListEngine(outputs), task.with_engine(EngineSelector("torch")).engine_for(HOW)
    assert isinstance(torch_engine, TorchEngine)
    for is_on, expected in ((False, outputs[0]), (True, outputs[3])):
        settings = replace(HOW, copy_guard=is_on)
        encoded = tokenizer.encode_batch([part.source])
        search = PartSearch([part], encoded, [0], settings, tokenizer, engine, torch_engine)
        found, looping = search.run(lambda done: None)
        assert [one.ids for one in found[0]] == [tuple(expected)]
        assert not looping


def test_loop_that_loses_a_placeholder_is_decoded_with_all_and_without_repetition() -> None:
    task = make_task(loops=True)
    text = "Return ``x`` now."
    off = task.predict([text], replace(HOW, copy_guard=False, repetition_guard=False))[0]
    on = task.predict([text], HOW)[0]
    assert [one.warnings[0] for one in (off, on)] == ["repetition"] * 2
    assert [one.answer.count("``x``") for one in (off, on)] == [0, 1]
    assert len(on.answer) < len(off.answer)
