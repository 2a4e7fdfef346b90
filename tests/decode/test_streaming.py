"""One continuation id by id: the same as a search writes, and further than the context reaches."""

import pytest
import torch

from manyheads.decode import DecodeSettings, generate, stream

from decode.small import BOS, EOS, FORBIDDEN, KINDS, SPECIAL, random_model

GREEDY = DecodeSettings(method="greedy", max_new_tokens=12)
SAMPLE = DecodeSettings(method="sample", max_new_tokens=12, top_k=6, temperature=1.3)


@pytest.mark.parametrize("kind", [*KINDS, "sample norm"])
@pytest.mark.parametrize("settings", [GREEDY, SAMPLE], ids=["greedy", "sample"])
@pytest.mark.parametrize("prompt", [[], [4], [5, 7, 4, 8, 6]], ids=len)
def test_a_stream_is_what_the_search_writes(kind: str, settings: DecodeSettings, prompt: list[int]) -> None:
    model = random_model(shape="decoder", **KINDS.get(kind, {"norm": "sample"}))
    rows = torch.tensor([prompt] * 3, dtype=torch.long).reshape(3, len(prompt))
    searched = generate(model, prompt=rows, settings=settings, streams=[0, 1, 2], **SPECIAL)
    for number, [hypothesis] in enumerate(searched):
        written = list(stream(model, prompt, settings=settings, number=number, **SPECIAL))
        assert tuple(w.id for w in written if w.id != EOS) == hypothesis.ids
        assert sum(w.log_probability for w in written) == pytest.approx(hypothesis.log_probability, abs=1e-6)


@pytest.mark.parametrize("n_prompt", [0, 3, 9, 10, 30])
def test_the_window_slides_where_the_context_ends(n_prompt: int) -> None:
    """Each id is the most probable one after some of the newest, as many as a context of 10 holds."""
    model = random_model(shape="decoder", max_length=10, positions="learned")  # which has no eleventh place
    prompt = [4 + place % 5 for place in range(n_prompt)]
    settings = DecodeSettings(method="greedy", max_new_tokens=40)
    ids = [w.id for w in stream(model, prompt, settings=settings, bos=BOS, eos=EOS, forbidden=(*FORBIDDEN, EOS))]
    assert len(ids) == 40
    read = prompt[-9:]
    for place, written in enumerate(ids):
        if len(read) > 9:
            read = (prompt + ids[:place])[-6:]
        logits = model(target=torch.tensor([[BOS, *read]]))[0, -1]
        logits[[*FORBIDDEN, BOS, EOS]] = -torch.inf
        assert written == logits.argmax()
        read = [*read, written]


def test_a_model_in_training_goes_on_training() -> None:
    model = random_model(shape="decoder", dropout=0.5).train()
    first = [w.id for w in stream(model, [4, 5], settings=GREEDY, **SPECIAL)]
    assert model.training
    assert first == [w.id for w in stream(model, [4, 5], settings=GREEDY, **SPECIAL)]


def test_a_beam_is_not_streamed() -> None:
    with pytest.raises(ValueError, match="cannot be streamed"):
        next(stream(random_model(shape="decoder"), [4], settings=DecodeSettings(method="beam"), **SPECIAL))
