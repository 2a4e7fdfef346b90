from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from manyheads.errors import DataError
from manyheads.model import DecoderState, ModelSettings, Tap, Transformer

from model.makers import (
    choices,
    describe,
    largest_difference,
    product_of,
    random_ids,
    real,
    relative_difference,
    seeded,
    small,
    small_model,
)

some_examples = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 10_000)


# Every valid combination of attention settings. Norms that mix positions or count padding are tested separately.
ATTENTION_SETTINGS = [
    {name: getattr(kind, name) for name in ("positions", "scores", "projections", "n_key_heads", "value_width")}
    for kind in product_of(
        positions=choices("positions"),
        scores=choices("scores"),
        projections=choices("projections"),
        n_key_heads=[None, 1],
        value_width=[None, 3],
    )
]


def changes(**fixed: str) -> st.SearchStrategy[dict[str, Any]]:
    """Settings of some valid model, with the settings in `fixed`."""
    options = [way for way in ATTENTION_SETTINGS if all(way.get(name, value) == value for name, value in fixed.items())]
    around = st.fixed_dictionaries(
        {
            "norm": st.sampled_from(["layer", "rms", "batch"]),
            "norm_placement": st.sampled_from(choices("norm_placement")),
            "activation": st.sampled_from(choices("activation")),
        }
    )
    return st.builds(lambda way, rest: {**way, **rest, **fixed}, st.sampled_from(options), around)


any_model = st.sampled_from(choices("shape")).flatmap(lambda shape: changes(shape=shape))
any_decoder = st.sampled_from(["encoder-decoder", "decoder"]).flatmap(lambda shape: changes(shape=shape))


def spread(ids: Tensor, is_real: Tensor, seed: int) -> Tensor:
    """The ids of one sentence at the real positions of a longer row, with random ids between them."""
    padded = random_ids(1, is_real.numel(), seed=seed)
    padded[0, is_real] = ids[0]
    return padded


@st.composite
def paddings(draw: st.DrawFn, n_real: int) -> Tensor:
    return torch.tensor(draw(st.permutations([True] * n_real + [False] * draw(st.integers(1, 4)))))


class TestShapes:
    def test_each_shape_outputs_logits_for_each_position(self) -> None:
        source, target = random_ids(2, 5), random_ids(2, 3)
        assert small_model(small())(source, target).shape == (2, 3, 13)
        assert small_model(small(shape="encoder"))(source).shape == (2, 5, 13)
        assert small_model(small(shape="decoder"))(target=target).shape == (2, 3, 13)

    def test_logits_are_computed_from_hidden(self) -> None:
        model, source, target = small_model(small()), random_ids(2, 5), random_ids(2, 3)
        hidden = model.hidden(source, target)
        assert hidden.shape == (2, 3, 8)
        assert torch.equal(model(source, target), hidden @ model.output.weight.T)

    @pytest.mark.parametrize(
        ("shape", "inputs", "fault"),
        [
            ("encoder-decoder", {"target": random_ids(1, 2)}, "A model of shape encoder-decoder needs a source."),
            ("encoder-decoder", {"source": random_ids(1, 2)}, "A model of shape encoder-decoder needs a target."),
            ("encoder", {}, "A model of shape encoder needs a source."),
            ("decoder", {}, "A model of shape decoder needs a target."),
        ],
    )
    def test_a_missing_input_is_named(self, shape: str, inputs: dict[str, Tensor], fault: str) -> None:
        with pytest.raises(TypeError, match=fault):
            small_model(small(shape=shape))(**inputs)

    @pytest.mark.parametrize(
        ("shape", "source", "fault"),
        [
            ("encoder-decoder", None, "A model of shape encoder-decoder needs a source."),
            ("decoder", random_ids(1, 2), "A model of shape decoder takes no source."),
            ("encoder", random_ids(1, 2), "A model of shape encoder has no decoder."),
        ],
    )
    def test_start_refuses_wrong_inputs(self, shape: str, source: Tensor | None, fault: str) -> None:
        with pytest.raises(TypeError, match=fault):
            small_model(small(shape=shape)).start(source)

    def test_attentions_are_in_the_order_of_a_forward_pass(self) -> None:
        model, tap = small_model(small()), Tap()
        model(random_ids(1, 2), random_ids(1, 2), tap=tap)
        order = [name.removesuffix(".weights") for name in tap.values if name.endswith(".weights")]
        assert [attention.name for attention in model.attentions()] == order


class TestParameters:
    def test_base_has_the_size_of_the_paper_and_untying_adds_a_matrix(self) -> None:
        def count(**changes: Any) -> int:
            with torch.device("meta"):
                return Transformer(ModelSettings.preset("base", vocab_size=37_000, **changes)).n_parameters

        assert 63e6 < count() < 65e6
        one_layer: dict[str, Any] = {"n_encoder_layers": 1, "n_decoder_layers": 1}
        tied, matrix = count(**one_layer), 37_000 * 512
        assert count(**one_layer, tie_output=False) - tied == matrix
        assert count(**one_layer, tie_source_target=False) - tied == matrix
        assert count(**one_layer, tie_output=False, tie_source_target=False) - tied == 2 * matrix

    def test_tied_embeddings_share_one_matrix(self) -> None:
        def ties(**changes: bool) -> tuple[bool, bool, bool]:
            model = Transformer(small(**changes))
            source, target = (
                model.source_embedding.token_embedding.weight,
                model.target_embedding.token_embedding.weight,
            )
            return source is target, target is model.output.weight, source is model.output.weight

        assert ties() == (True, True, True)
        assert ties(tie_output=False) == (True, False, False)
        assert ties(tie_source_target=False) == (False, True, False)
        assert ties(tie_output=False, tie_source_target=False) == (False, False, False)

    def test_linear_layers_are_initialized_by_glorot_and_biases_by_zeros(self) -> None:
        model = Transformer(small(width=64, n_heads=4, attention_bias=True))
        query = model.encoder[0].attention.project.query
        assert query.weight.abs().max().item() == pytest.approx((6 / 128) ** 0.5, rel=0.01)
        assert query.bias.abs().max() == 0

    @pytest.mark.parametrize(
        "kind", [*product_of(scores=choices("scores")), *product_of(projections=choices("projections"))], ids=describe
    )
    def test_every_parameter_receives_a_gradient(self, kind: ModelSettings) -> None:
        torch.manual_seed(0)
        model = Transformer(kind)
        model(random_ids(3, 6), random_ids(3, 5, seed=1)).logsumexp(-1).sum().backward()
        idle = [
            name for name, value in model.named_parameters() if value.grad is None or not value.grad.abs().sum() > 0
        ]
        assert idle == []


class TestPadding:
    @some_examples
    @given(st.data(), seeds)
    def test_padding_never_changes_real_tokens(self, data: st.DataObject, seed: int) -> None:
        model = small_model(small(**data.draw(any_model)))
        inputs, padded = {}, {}
        for side in ("source", "target"):
            if getattr(model.settings, {"source": "has_encoder", "target": "has_decoder"}[side]):
                ids = random_ids(1, data.draw(st.integers(1, 6)), seed=seed)
                is_real = data.draw(paddings(ids.numel()))
                inputs[side], padded[side] = ids, spread(ids, is_real, seed + 1)
                padded[f"{side}_is_real"] = is_real[None]
        # The batch also contains a sentence without any token.
        batch = {
            name: torch.cat([value, torch.zeros_like(value) if value.dtype == torch.bool else value])
            for name, value in padded.items()
        }
        output = model(**batch)
        last = "target" if model.settings.has_decoder else "source"
        assert output.isfinite().all()
        assert relative_difference(output[0, padded[f"{last}_is_real"][0]], model(**inputs)[0]) < 1e-5

    def test_padding_does_not_change_real_tokens_in_training_with_batch_norm(self) -> None:
        assert self.change_by_padding("batch", training=True) < 1e-5

    @pytest.mark.parametrize(("norm", "training"), [("batch-with-padding", True), ("sample", True), ("sample", False)])
    def test_padding_changes_real_tokens_with_norms_that_count_it(self, norm: str, training: bool) -> None:
        assert self.change_by_padding(norm, training=training) > 1e-2

    @staticmethod
    def change_by_padding(norm: str, *, training: bool) -> float:
        torch.manual_seed(0)
        model = Transformer(small(shape="encoder", norm=norm)).train(training)
        ids = random_ids(3, 5)
        more = torch.cat([ids, random_ids(3, 2, seed=1)], dim=1)
        return largest_difference(model(ids), model(more, source_is_real=real(*["xxxxx.."] * 3))[:, :5])

    def test_padding_receives_no_gradient(self) -> None:
        model = Transformer(small(tie_output=False))
        source = torch.tensor([[1, 2, 12]])  # 12 occurs in padding only
        model(source, random_ids(1, 3, vocab_size=5), source_is_real=real("xx.")).logsumexp(-1).sum().backward()
        gradient = model.source_embedding.token_embedding.weight.grad
        assert gradient is not None
        assert gradient[12].abs().sum() == 0
        assert gradient[1].abs().sum() > 0

    @pytest.mark.parametrize("kind", product_of(positions=choices("positions"), scores=choices("scores")), ids=describe)
    def test_a_source_of_only_padding_has_finite_logits_and_gradients(self, kind: ModelSettings) -> None:
        for tap in (None, Tap()):
            model = Transformer(kind)
            source_is_real, target_is_real = real("xxx", "..."), real(".xx", "...")
            logits = model(
                random_ids(2, 3),
                random_ids(2, 3),
                source_is_real=source_is_real,
                target_is_real=target_is_real,
                tap=tap,
            )
            assert logits.isfinite().all()
            logits.logsumexp(-1).sum().backward()
            assert all(value.grad is None or value.grad.isfinite().all() for value in model.parameters())


class TestOrder:
    @some_examples
    @given(st.data(), seeds)
    def test_earlier_positions_do_not_depend_on_later_ones(self, data: st.DataObject, seed: int) -> None:
        model = small_model(small(**data.draw(any_decoder)))
        source = random_ids(2, 4, seed=seed) if model.settings.has_encoder else None
        target = random_ids(2, 6, seed=seed + 1)
        position = data.draw(st.integers(1, 5))
        changed = target.clone()
        changed[:, position] = (changed[:, position] + data.draw(st.integers(1, 12))) % 13
        before, after = model.hidden(source, target), model.hidden(source, changed)
        assert largest_difference(before[:, :position], after[:, :position]) <= 1e-6
        assert largest_difference(before[:, position], after[:, position]) > 1e-6

    @pytest.mark.parametrize("tap", [None, Tap()], ids=["fused", "explicit"])
    @pytest.mark.parametrize("norm", choices("norm"))
    def test_no_gradient_flows_to_later_positions(self, norm: str, tap: Tap | None) -> None:
        model = small_model(small(norm=norm))
        embedded: list[Tensor] = []

        def keep(_module: object, _inputs: object, output: Tensor) -> None:
            output.retain_grad()
            embedded.append(output)

        hook = model.target_embedding.register_forward_hook(keep)
        model.hidden(random_ids(2, 4), random_ids(2, 6), tap=tap)[:, 2].sin().sum().backward()
        hook.remove()
        model.zero_grad()
        gradient = embedded[0].grad
        assert gradient is not None
        assert (gradient[:, :3].abs().sum((0, 2)) > 0).all()
        leaks = gradient[:, 3:].abs().max() > 0
        assert leaks == model.settings.mixes_positions

    @some_examples
    @given(changes(shape="encoder", positions="none", scores="scaled-dot"), st.permutations(range(5)), seeds)
    def test_without_positions_an_encoder_is_permutation_equivariant(
        self, kind: dict[str, Any], order: list[int], seed: int
    ) -> None:
        model, ids = small_model(small(**kind)), random_ids(2, 5, seed=seed)
        assert relative_difference(model(ids)[:, order], model(ids[:, order])) < 1e-5

    @pytest.mark.parametrize(
        "kind",
        [
            *product_of(shape=["encoder"], positions=["sinusoidal", "learned", "rotary", "alibi"]),
            *product_of(shape=["encoder"], positions=["none"], scores=["dense-synthesizer", "random-synthesizer"]),
        ],
        ids=lambda kind: f"{kind.positions}-{kind.scores}",
    )
    def test_with_positions_an_encoder_is_not_permutation_equivariant(self, kind: ModelSettings) -> None:
        model, ids, order = small_model(kind), torch.tensor([[1, 2, 3, 4, 5]]), [4, 2, 0, 1, 3]
        assert largest_difference(model(ids)[:, order], model(ids[:, order])) > 1e-2


class TestDecoding:
    @staticmethod
    def start(model: Transformer, n_rows: int, seed: int) -> tuple[Tensor | None, Tensor | None, DecoderState]:
        if not model.settings.has_encoder:
            return None, None, model.start(n_rows=n_rows)
        source = random_ids(n_rows, 4, seed=seed)
        source_is_real = torch.rand(n_rows, 4, generator=seeded(seed)) < 0.7
        return source, source_is_real, model.start(source, source_is_real)

    @some_examples
    @given(st.data(), seeds)
    def test_incremental_decoding_equals_one_pass(self, data: st.DataObject, seed: int) -> None:
        model = small_model(small(**data.draw(any_decoder)))
        source, source_is_real, state = self.start(model, 3, seed)
        sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
        target = random_ids(3, sum(sizes), seed=seed + 1)
        is_real = torch.rand(target.shape, generator=seeded(seed)) < data.draw(st.sampled_from([0.6, 1.1]))
        chunks = zip(target.split(sizes, 1), is_real.split(sizes, 1), strict=True)
        stepwise = torch.cat([model.decode(ids, state, is_real=real_ids) for ids, real_ids in chunks], dim=1)
        whole = model.hidden(source, target, source_is_real=source_is_real, target_is_real=is_real)
        assert relative_difference(stepwise, whole) < 1e-5
        assert torch.equal(state.is_real, is_real)

    @some_examples
    @given(changes(shape="encoder-decoder"), st.lists(st.integers(0, 2), min_size=1, max_size=5), seeds)
    def test_selected_rows_continue_from_their_state(self, kind: dict[str, Any], rows: list[int], seed: int) -> None:
        model, kept = small_model(small(**kind)), torch.tensor(rows)
        source, source_is_real, state = self.start(model, 3, seed)
        assert source is not None
        assert source_is_real is not None
        first, second = random_ids(3, 3, seed=seed + 1), random_ids(len(rows), 2, seed=seed + 2)
        model.decode(first, state, is_real=real("xxx", "xx.", ".xx"))
        state.select(kept)
        continued = model.decode(second, state)
        assert state.memory is not None
        assert state.memory.size(0) == len(rows)
        is_real = torch.cat([real("xxx", "xx.", ".xx")[kept], torch.ones_like(second, dtype=torch.bool)], dim=1)
        whole = model.hidden(
            source[kept],
            torch.cat([first[kept], second], dim=1),
            source_is_real=source_is_real[kept],
            target_is_real=is_real,
        )
        assert relative_difference(continued, whole[:, 3:]) < 1e-5

    def test_prompts_of_different_lengths_continue_as_if_alone(self) -> None:
        model = small_model(small(shape="decoder"))
        long, short, following = random_ids(1, 4), random_ids(1, 2, seed=1), random_ids(2, 3, seed=2)
        for prompt, is_real in [
            (torch.cat([short, torch.zeros(1, 2, dtype=torch.long)], dim=1), real("xxxx", "xx..")),
            (torch.cat([torch.zeros(1, 2, dtype=torch.long), short], dim=1), real("xxxx", "..xx")),
        ]:
            state = model.start(n_rows=2)
            model.decode(torch.cat([long, prompt]), state, is_real=is_real)
            together = model.decode(following, state)
            for row, alone in enumerate((long, short)):
                whole = model.hidden(target=torch.cat([alone, following[row : row + 1]], dim=1))
                assert relative_difference(together[row], whole[0, -3:]) < 1e-5

    def test_the_source_is_projected_once(self) -> None:
        model = small_model(small())
        state = model.start(random_ids(2, 4))
        model.decode(random_ids(2, 1), state)
        cached = state.caches[0][1].keys_values
        assert cached is not None
        model.decode(random_ids(2, 1), state)
        assert state.caches[0][1].keys_values is cached
        assert state.caches[0][0].keys_values is not None
        assert state.caches[0][0].keys_values[0].size(2) == 2


class TestLength:
    @pytest.mark.parametrize(
        "changes", [{"positions": "learned"}, {"scores": "dense-synthesizer"}, {"scores": "random-synthesizer"}]
    )
    def test_a_sequence_beyond_max_length_is_a_data_error(self, changes: dict[str, str]) -> None:
        model = small_model(small(max_length=5, **changes))
        model(random_ids(1, 5), random_ids(1, 5))
        fault = r"^A sequence of 6 tokens is longer than model\.max_length = 5\. Split the text\.$"
        with pytest.raises(DataError, match=fault):
            model(random_ids(1, 6), random_ids(1, 5))
        with pytest.raises(DataError, match=fault):
            model(random_ids(1, 5), random_ids(1, 6))

    def test_a_state_can_continue_after_a_refused_sequence(self) -> None:
        model = small_model(small(max_length=5, positions="learned"))
        source, target = random_ids(1, 3), random_ids(1, 5)
        state = model.start(source)
        model.decode(target[:, :4], state)
        with pytest.raises(DataError):
            model.decode(random_ids(1, 2), state)
        assert relative_difference(model.decode(target[:, 4:], state), model.hidden(source, target)[:, 4:]) < 1e-5

    @pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi", "none"])
    def test_other_positions_have_no_maximum_length(self, positions: str) -> None:
        model = small_model(small(max_length=5, positions=positions))
        assert model(random_ids(1, 9), random_ids(1, 8)).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@pytest.mark.parametrize("positions", choices("positions"))
def test_the_model_runs_in_other_precisions(positions: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = Transformer(small(positions=positions)).to(dtype)
    for tap in (None, Tap()):
        assert model(random_ids(1, 3), random_ids(1, 3), tap=tap).dtype == dtype
