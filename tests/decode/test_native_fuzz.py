"""Random small models and sources: the native engine against the torch engine. `make fuzz-native` runs many.

Two engines round differently, so where two continuations are nearly equally probable they may choose differently. A
greedy difference is accepted only where the torch model finds both tokens equally probable at the first position that
differs. In a beam search the tie may be between hypotheses that were pruned later: there the log-probability of every
native hypothesis must be the one that the torch model gives for it, and differences must be rare. Some random models
are ill-conditioned: float32 itself is far from float64. Of these only the int8 checks are made.
"""

import os
import time
from collections import Counter
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

from manyheads.decode import DecodeSettings, Hypothesis, Shortlist, SpecialTokens, TorchEngine
from manyheads.decode.native.native_engine import make_native
from manyheads.errors import RecipeError
from manyheads.model import ModelSettings, Transformer

from decode.test_native import randomize
from needs import needs_compiler

pytestmark = needs_compiler
N_CASES = int(os.environ.get("MANYHEADS_FUZZ", "12"))
FIRST = 1_000_000 * int(os.environ.get("MANYHEADS_FUZZ_SEED", "0"))
SECONDS = float(os.environ.get("MANYHEADS_FUZZ_SECONDS", "inf"))
TOLERANCE = 2e-3  # of log-probabilities
ROUNDING = 1e-4  # of torch in float32 against float64, for a model that is well-conditioned


def _random_settings(random: np.random.Generator) -> ModelSettings:
    """Random valid settings: invalid combinations are drawn again."""
    while True:
        n_heads = int(random.integers(1, 9))
        table: dict[str, Any] = {
            "vocab_size": int(random.integers(8, 200)),
            "width": int(random.integers(2, 80)),
            "n_encoder_layers": int(random.integers(1, 4)),
            "n_decoder_layers": int(random.integers(1, 4)),
            "feed_forward_width": int(random.integers(1, 140)),
            "activation": random.choice(["relu", "gelu", "swiglu"]).item(),
            "max_length": int(random.integers(1, 70)),
            "n_heads": n_heads,
            "n_key_heads": int(random.choice([0, 1, n_heads])),
            "head_width": int(random.integers(1, 40)),
            "value_width": int(random.choice([0, *random.integers(1, 70, size=2)])),
            "attention_bias": bool(random.integers(2)),
            "scores": random.choice(["scaled-dot", "dot"]).item(),
            "projections": random.choice(["separate", "separate", "tied", "shared"]).item(),
            "positions": random.choice(["sinusoidal", "learned", "rotary", "alibi", "none"]).item(),
            "norm": random.choice(["layer", "rms", "batch"]).item(),
            "norm_placement": random.choice(["pre", "post"]).item(),
            "tie_source_target": bool(random.integers(2)),
            "tie_output": bool(random.integers(2)),
            "scale_embedding": bool(random.integers(2)),
        }
        try:
            settings = ModelSettings(**table)
            if random.integers(3):
                return settings
            kept = {
                name: tuple(head for head in range(n_heads) if random.integers(3))
                for name in settings.attention_names()
                if random.integers(2)
            }
            return ModelSettings(**table, kept_heads=kept)
        except RecipeError:
            continue


def _random_model(settings: ModelSettings, seed: int) -> Transformer:
    torch.manual_seed(seed)
    return randomize(Transformer(settings))


def _random_search(random: np.random.Generator) -> DecodeSettings:
    max_new_tokens = int(random.integers(1, 30))
    if random.integers(2):
        return DecodeSettings(method="greedy", max_new_tokens=max_new_tokens)
    beam = int(random.choice([1, 2, 3, 5, 8, 17, 64]))
    return DecodeSettings(
        beam=beam,
        n_best=int(random.integers(1, beam + 1)),
        length_penalty=float(random.choice([0.0, 0.6, 1.0, 2.5])),
        max_new_tokens=max_new_tokens,
    )


def _log_probabilities(
    model: Transformer, source: list[int], written: list[int], special_tokens: SpecialTokens
) -> torch.Tensor:
    """What the torch model gives for every token at every position after BOS and `written`, without any search."""
    with torch.inference_mode():
        return model(torch.tensor([source]), torch.tensor([[special_tokens.bos, *written]])).log_softmax(-1)[0]


def _check_tie(
    model: Transformer, source: list[int], own: Hypothesis, expected: Hypothesis, special_tokens: SpecialTokens
) -> None:
    """The two greedy hypotheses differ first where both tokens are equally probable."""
    ours, theirs = ([*one.ids, *([special_tokens.eos] if one.finished else [])] for one in (own, expected))
    at = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b)
    given = _log_probabilities(model, source, ours[:at], special_tokens)[-1]
    assert given[ours[at]].item() == pytest.approx(given[theirs[at]].item(), abs=TOLERANCE)


def _log_probability(model: Transformer, source: list[int], own: Hypothesis, special_tokens: SpecialTokens) -> float:
    """The log-probability of one hypothesis by the torch model, without a search."""
    written = [*own.ids, *([special_tokens.eos] if own.finished else [])]
    given = _log_probabilities(model, source, written[:-1], special_tokens)
    return sum(given[i, id].item() for i, id in enumerate(written))


def _rounding(
    model: Transformer, sources: list[list[int]], found: list[list[Hypothesis]], special_tokens: SpecialTokens
) -> float:
    """The difference of float32 and float64 in the log-probabilities of the twelve least probable hypotheses."""
    exact = deepcopy(model).double()
    some = [(source, own[0]) for source, own in zip(sources, found, strict=True) if own[0].ids]
    some = sorted(some, key=lambda pair: pair[1].log_probability)[:12]
    pairs = [[_log_probability(one, source, own, special_tokens) for one in (model, exact)] for source, own in some]
    return max((abs(a - b) for a, b in pairs), default=0.0)


def _check_tokens(
    model: Transformer,
    special_tokens: SpecialTokens,
    sources: list[list[int]],
    search: DecodeSettings,
    counts: Counter[str],
) -> None:
    ours = make_native(model, special_tokens).generate(sources, search, range(len(sources)))
    theirs = TorchEngine(model, special_tokens).generate(sources, search, range(len(sources)))
    if not _rounding(model, sources, theirs, special_tokens) <= ROUNDING:
        counts["ill-conditioned models"] += 1
        return
    counts["sentences"] += len(sources)
    for source, own, expected in zip(sources, ours, theirs, strict=True):
        if [one.ids for one in own] == [one.ids for one in expected]:
            for one, other in zip(own, expected, strict=True):
                assert one.log_probability == pytest.approx(other.log_probability, rel=1e-4, abs=TOLERANCE)
                assert one.score == pytest.approx(other.score, rel=1e-4, abs=TOLERANCE)
            continue
        counts["ties"] += 1
        if search.method == "greedy":
            _check_tie(model, source, own[0], expected[0], special_tokens)
        for one in own:
            given = _log_probability(model, source, one, special_tokens)
            assert one.log_probability == pytest.approx(given, rel=1e-4, abs=TOLERANCE)


def _check_int8(
    model: Transformer,
    special_tokens: SpecialTokens,
    sources: list[list[int]],
    search: DecodeSettings,
    shortlist: Shortlist | None,
) -> None:
    """Quantized weights give other tokens: every hypothesis must be one that the search can give."""
    settings = model.settings
    native = make_native(model, special_tokens, is_int8=True, shortlist=shortlist)
    for source, own in zip(sources, native.generate(sources, search, range(len(sources))), strict=True):
        assert 1 <= len(own) <= search.n_best
        for one in own:
            assert len(one.ids) + one.finished <= min(search.max_length(len(source)), settings.max_length)
            assert not set(one.ids) & {*special_tokens.forbidden, special_tokens.bos, special_tokens.eos}
            assert all(0 <= id < settings.vocab_size for id in one.ids)
            assert one.log_probability <= 1e-3


def check_case(number: int, counts: Counter[str]) -> None:
    random = np.random.default_rng(number)
    settings = _random_settings(random)
    model = _random_model(settings, number)
    special_tokens = SpecialTokens(bos=2, eos=3, pad=0, forbidden=(0, 1, 2, *range(5, 5 + int(random.integers(0, 3)))))
    lengths = random.integers(1, settings.max_length + 1, size=random.integers(1, 90))
    sources = [random.integers(4, settings.vocab_size, size=min(length, 40)).tolist() for length in lengths]
    search = _random_search(random)
    if search.method == "beam":
        sources = sources[: max(1, 320 // search.beam)]  # the torch engine takes a minute for 80 sources and 64 beams
    _check_tokens(model, special_tokens, sources, search, counts)
    lists = [random.integers(4, settings.vocab_size, size=3).tolist() for _ in range(settings.vocab_size)]
    _check_int8(
        model, special_tokens, sources, search, Shortlist.from_lists(lists, [3]) if random.integers(2) else None
    )


def test_random_models_generate_the_same_tokens() -> None:
    counts: Counter[str] = Counter()
    started = time.monotonic()
    for number in range(FIRST, FIRST + N_CASES):
        if time.monotonic() - started > SECONDS:
            break
        counts["models"] += 1
        try:
            check_case(number, counts)
        except Exception as error:
            error.add_note(f"Case {number}: reproduce it with check_case({number}, Counter()).")
            raise
        if counts["models"] % 25 == 0 or counts["models"] == N_CASES:
            print(f"{time.monotonic() - started:.0f} s: {dict(counts)}", flush=True)  # noqa: T201
    assert counts["models"] > 0
    assert counts["ill-conditioned models"] <= max(2, 0.2 * counts["models"])
    assert counts["ties"] <= 2 + 0.01 * counts["sentences"]
