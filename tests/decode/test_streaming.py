"""Streaming: the ids of a search, one at a time, beyond the length of the context."""

import pytest
import torch

from manyheads.decode import DecodeSettings, generate, stream

from decode.small import BOS, EOS, FORBIDDEN, KINDS, SPECIAL, random_model

GREEDY = DecodeSettings(method="greedy", max_new_tokens=12)
SAMPLE = DecodeSettings(method="sample", max_new_tokens=12, top_k=6, temperature=1.3)


@pytest.mark.parametrize("kind", [*KINDS, "sample norm"])
@pytest.mark.parametrize("settings", [GREEDY, SAMPLE], ids=["greedy", "sample"])
@pytest.mark.parametrize("prompt", [[], [4], [5, 7, 4, 8, 6]], ids=len)
def test_a_stream_equals_the_search(kind: str, settings: DecodeSettings, prompt: list[int]) -> None:
    model = random_model(shape="decoder", **KINDS.get(kind, {"norm": "sample"}))
    rows = torch.tensor([prompt] * 3, dtype=torch.long).reshape(3, len(prompt))
    searched = generate(model, prompt=rows, settings=settings, streams=[0, 1, 2], **SPECIAL)
    for number, [hypothesis] in enumerate(searched):
        written = list(stream(model, prompt, settings=settings, number=number, **SPECIAL))
        assert tuple(w.id for w in written if w.id != EOS) == hypothesis.ids
        assert sum(w.log_probability for w in written) == pytest.approx(hypothesis.log_probability, abs=1e-6)


@pytest.mark.parametrize("n_prompt", [0, 3, 9, 10, 30])
def test_the_context_slides_when_it_is_full(n_prompt: int) -> None:
    """Each id is the most probable one after the latest ids that fit into a context of 10."""
    model = random_model(shape="decoder", max_length=10, positions="learned")  # has no eleventh position
    prompt = [4 + position % 5 for position in range(n_prompt)]
    settings = DecodeSettings(method="greedy", max_new_tokens=40)
    ids = [w.id for w in stream(model, prompt, settings=settings, bos=BOS, eos=EOS, forbidden=(*FORBIDDEN, EOS))]
    assert len(ids) == 40
    read = prompt[-9:]
    for position, written in enumerate(ids):
        if len(read) > 9:
            read = (prompt + ids[:position])[-6:]
        logits = model(target=torch.tensor([[BOS, *read]]))[0, -1]
        logits[[*FORBIDDEN, BOS, EOS]] = -torch.inf
        assert written == logits.argmax()
        read = [*read, written]


def test_the_training_mode_is_restored() -> None:
    model = random_model(shape="decoder", dropout=0.5).train()
    first = [w.id for w in stream(model, [4, 5], settings=GREEDY, **SPECIAL)]
    assert model.training
    assert first == [w.id for w in stream(model, [4, 5], settings=GREEDY, **SPECIAL)]


def test_beam_search_cannot_be_streamed() -> None:
    with pytest.raises(ValueError, match="cannot be streamed"):
        next(stream(random_model(shape="decoder"), [4], settings=DecodeSettings(method="beam"), **SPECIAL))
