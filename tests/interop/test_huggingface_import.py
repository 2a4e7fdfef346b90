"""The Hugging Face import: the same vectors and logits as `transformers`, for every family."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manyheads.bundle import Bundle, load
from manyheads.decode import DecodeSettings
from manyheads.interop import import_huggingface
from manyheads.text.tokens.imported_tokenizer import ImportedTokenizer

from interop import foreign

transformers: Any = pytest.importorskip("transformers", reason="transformers is not installed")

CLOSE = {"rtol": 0.0, "atol": 1e-4}
N_IDS = 96  # of a WordPiece vocabulary
N_BYTES = 288  # of a byte-level one


def ours(bundle: Bundle, ids: torch.Tensor, is_real: torch.Tensor) -> torch.Tensor:
    """Their ids as ours; padding as PAD."""
    tokenizer = bundle.task.tokenizer
    assert isinstance(tokenizer, ImportedTokenizer)
    return torch.tensor(tokenizer.numbering.ours)[ids].masked_fill(~is_real, 0)


def theirs(bundle: Bundle) -> list[int]:
    """Our id of each of theirs."""
    tokenizer = bundle.task.tokenizer
    assert isinstance(tokenizer, ImportedTokenizer)
    return tokenizer.numbering.ours


@st.composite
def sizes(draw: Callable[[Any], Any]) -> dict[str, int]:
    """Sizes of a small Transformer."""
    n_heads = draw(st.sampled_from([1, 2, 3, 4]))
    return {
        "n_heads": n_heads,
        "width": n_heads * draw(st.sampled_from([4, 6, 8])),
        "n_layers": draw(st.integers(1, 3)),
        "inner": draw(st.integers(3, 20)),
        "seed": draw(st.integers(0, 1000)),
    }


def bert_config(name: str, size: dict[str, int], **changes: Any) -> Any:
    """The config of an encoder of BERT's kind."""
    own = {
        "vocab_size": N_IDS if name in ("Bert", "DistilBert") else N_BYTES,
        "hidden_size": size["width"],
        "num_hidden_layers": size["n_layers"],
        "num_attention_heads": size["n_heads"],
        "intermediate_size": size["inner"],
        "max_position_embeddings": 40,
        "hidden_dropout_prob": 0.0,
        "pad_token_id": 0 if name in ("Bert", "DistilBert") else 1,
    }
    if name == "DistilBert":
        names = {"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"}
        names |= {"intermediate_size": "hidden_dim", "hidden_dropout_prob": "dropout"}
        own = {names.get(key, key): value for key, value in own.items()}
    return getattr(transformers, f"{name}Config")(**own, **changes)


ENCODERS = ("Bert", "Roberta", "XLMRoberta", "DistilBert", "MPNet")


def write_encoder(folder: Path, name: str, suffix: str, size: dict[str, int], **changes: Any) -> Any:
    """A random model of a class such as BertForMaskedLM, in a folder."""
    config = bert_config(name, size, **changes)
    model = foreign.randomize(getattr(transformers, name + suffix)(config), size["seed"])
    is_word_piece = name in ("Bert", "DistilBert")
    tokenizer = foreign.word_piece(N_IDS) if is_word_piece else foreign.byte_level(N_BYTES, foreign.ROBERTA_SPECIAL)
    foreign.write_folder(folder, model, tokenizer, foreign.BERT_NAMES if is_word_piece else foreign.ROBERTA_NAMES)
    return model


def run_theirs(name: str, model: Any, ids: torch.Tensor, is_real: torch.Tensor) -> Any:
    """Their outputs; BERT counts padding on the left as positions unless it is told not to."""
    pad = 0 if name in ("Bert", "DistilBert") else 1
    inputs = {"input_ids": ids.masked_fill(~is_real, pad), "attention_mask": is_real.long()}
    if name == "Bert":
        inputs["position_ids"] = (is_real.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        return model(**inputs, output_hidden_states=True)


def check_encoder(folder: Path, name: str, size: dict[str, int]) -> None:
    model = write_encoder(folder, name, "Model", size)
    bundle = import_huggingface(folder)
    assert bundle.kind == "embed"
    special = (0, *range(80, N_IDS)) if name in ("Bert", "DistilBert") else (0, 1, 2, 3, 4)
    for side in ("right", "left") if name != "DistilBert" else ("right",):  # it takes no positions
        ids, is_real = foreign.padded(size["seed"], N_IDS, special, side)
        expected = run_theirs(name, model, ids, is_real).last_hidden_state
        found = bundle.task.model.encode(ours(bundle, ids, is_real), is_real)
        torch.testing.assert_close(found[is_real], expected[is_real], **CLOSE)


def folder_for(tmp_path: Path, size: dict[str, int]) -> Path:
    return tmp_path / "-".join(map(str, size.values()))


quick = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
thorough = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("name", ENCODERS)
@given(size=sizes())
@quick
def test_an_encoder_computes_the_vectors_of_transformers(name: str, size: dict[str, int], tmp_path: Path) -> None:
    check_encoder(folder_for(tmp_path, size), name, size)


@pytest.mark.proof
@pytest.mark.parametrize("name", ENCODERS)
@given(size=sizes())
@thorough
def test_50_encoders_of_each_family(name: str, size: dict[str, int], tmp_path: Path) -> None:
    check_encoder(folder_for(tmp_path, size), name, size)


SIZE = {"n_heads": 2, "width": 8, "n_layers": 2, "inner": 12, "seed": 1}
TEXTS = ["the cat sleeps", "a dog.", "unable, the old man the boats"]


def tokens_of(folder: Path, texts: list[str]) -> Any:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)


@pytest.mark.parametrize("name", ENCODERS)
def test_a_classifier_has_their_probabilities(name: str, tmp_path: Path) -> None:
    labels = {0: "world", 1: "sport", 2: "art"}
    model = write_encoder(tmp_path / "m", name, "ForSequenceClassification", SIZE, num_labels=3, id2label=labels)
    bundle = import_huggingface(tmp_path / "m")
    bundle.save(tmp_path / "bundle")
    loaded = load(tmp_path / "bundle")
    ids = encode(bundle, TEXTS)
    with torch.no_grad():
        expected = torch.cat([model(input_ids=row[None]).logits for row in ids])
    for each in (bundle, loaded):
        found = each.task.logits(TEXTS)  # type: ignore[attr-defined]
        torch.testing.assert_close(found, expected, **CLOSE)
        assert each.predict(TEXTS) == [labels[int(row.argmax())] for row in expected]


def encode(bundle: Bundle, texts: list[str]) -> list[torch.Tensor]:
    """Their ids of each text, with what is before and after it."""
    tokenizer = bundle.task.tokenizer
    assert isinstance(tokenizer, ImportedTokenizer)
    rows = [[2, *row, 3] for row in tokenizer.encode_batch(texts)]
    return [torch.tensor([tokenizer.numbering.theirs[number] for number in row]) for row in rows]


@pytest.mark.parametrize("name", ENCODERS)
def test_a_masked_language_model_has_their_logits(name: str, tmp_path: Path) -> None:
    model = write_encoder(tmp_path / "m", name, "ForMaskedLM", SIZE)
    bundle = import_huggingface(tmp_path / "m")
    assert bundle.kind == "masked"
    ids, is_real = foreign.padded(3, N_IDS, (0, 1, 2, 3, 4, *range(80, N_IDS)), "right")
    expected = run_theirs(name, model, ids, is_real).logits
    found = bundle.task.model(ours(bundle, ids, is_real), source_is_real=is_real)[..., theirs(bundle)]
    torch.testing.assert_close(found[is_real], expected[is_real], **CLOSE)
    assert "[MASK]" not in bundle.predict(["the [MASK] sleeps"])[0]


@pytest.mark.parametrize("name", ENCODERS)
def test_a_tagger_has_their_scores_of_the_first_token(name: str, tmp_path: Path) -> None:
    labels = {0: "I-PER", 1: "O", 2: "B-PER", 3: "B-LOC", 4: "I-LOC"}
    model = write_encoder(tmp_path / "m", name, "ForTokenClassification", SIZE, num_labels=5, id2label=labels)
    bundle = import_huggingface(tmp_path / "m")
    words = ["unable", "cats", "sleeps"]
    tagger = bundle.task.word_tagger  # type: ignore[attr-defined]
    with torch.no_grad():
        (found,) = tagger._score([words], lambda done: None).words
    tokenizer: Any = bundle.task.tokenizer
    cut = tokenizer.encode_words(words)
    row = [2, *(number for word in cut for number in word), 3]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[tokenizer.numbering.theirs[number] for number in row]])).logits[0]
    firsts = [1 + sum(map(len, cut[:number])) for number in range(len(cut))]
    names = bundle.task.states.names  # type: ignore[attr-defined]
    for word, first in enumerate(firsts):
        assert found[word, names.index("S-LOC")] == pytest.approx(float(logits[first, 3]), abs=1e-4)
        assert found[word, names.index("E-PER")] == pytest.approx(float(logits[first, 0]), abs=1e-4)
        assert found[word, 0] == pytest.approx(float(logits[first, 1]), abs=1e-4)


DECODERS: dict[str, dict[str, Any]] = {
    "GPT2": {},
    "Llama": {},
    "Mistral": {"sliding_window": None},
    "Qwen2": {},
    "Qwen3": {},
}
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "GPT2": [{}, {"tie_word_embeddings": False}, {"activation_function": "gelu"}],
    "Llama": [
        {},
        {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 3.0}},
        {
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 100.0,
                "factor": 4.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 32,
            }
        },
    ],
    "Mistral": [{"sliding_window": None}],
    "Qwen2": [{}, {"tie_word_embeddings": True}],
    "Qwen3": [{}, {"tie_word_embeddings": True}],
}
END = "<|endoftext|>"


def write_decoder(folder: Path, name: str, size: dict[str, int], **changes: Any) -> Any:
    """A random language model in a folder; its end of a text is also its beginning, and it has no padding."""
    if name == "GPT2":
        own = {"n_embd": size["width"], "n_layer": size["n_layers"], "n_head": size["n_heads"], "n_positions": 40}
        own |= {"n_inner": size["inner"]}
    else:
        own = {
            "hidden_size": size["width"],
            "num_hidden_layers": size["n_layers"],
            "num_attention_heads": size["n_heads"],
            "num_key_value_heads": 2 if size["n_heads"] == 4 else 1,
            "head_dim": 2 * (size["inner"] // 4 + 1),
            "intermediate_size": size["inner"],
            "max_position_embeddings": 64,
        }
    special = {"vocab_size": N_BYTES, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    config = getattr(transformers, f"{name}Config")(**own, **special, **changes)
    made = getattr(transformers, "GPT2LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM")(config)
    model = foreign.randomize(made, size["seed"])
    foreign.write_folder(folder, model, foreign.byte_level(N_BYTES, (END,)), {"bos_token": END, "eos_token": END})
    return model


def check_decoder(folder: Path, name: str, size: dict[str, int], changes: dict[str, Any]) -> None:
    model = write_decoder(folder, name, size, **changes)
    bundle = import_huggingface(folder)
    assert bundle.kind == "language"
    for side in ("right", "left"):
        ids, is_real = foreign.padded(size["seed"], N_BYTES, (0,), side)
        positions = (is_real.cumsum(1) - 1).clamp(min=0)
        with torch.no_grad():
            expected = model(
                input_ids=ids, attention_mask=is_real.long(), position_ids=positions, output_hidden_states=True
            )
            hidden = bundle.task.model.hidden(None, ours(bundle, ids, is_real), target_is_real=is_real)
            found = bundle.task.model.output.logits(hidden)[..., theirs(bundle)]
        torch.testing.assert_close(hidden[is_real], expected.hidden_states[-1][is_real], **CLOSE)
        torch.testing.assert_close(found[is_real], expected.logits[is_real], **CLOSE)


def case_of(name: str) -> Any:
    return st.tuples(sizes(), st.sampled_from(VARIANTS[name]))


@pytest.mark.parametrize("name", DECODERS)
@given(data=st.data())
@quick
def test_a_decoder_computes_the_logits_of_transformers(name: str, data: Any, tmp_path: Path) -> None:
    size, changes = data.draw(case_of(name))
    number = len(list(tmp_path.iterdir()))
    check_decoder(tmp_path / str(number), name, size, changes)


@pytest.mark.proof
@pytest.mark.parametrize("name", DECODERS)
@given(data=st.data())
@thorough
def test_50_decoders_of_each_family(name: str, data: Any, tmp_path: Path) -> None:
    size, changes = data.draw(case_of(name))
    number = len(list(tmp_path.iterdir()))
    check_decoder(tmp_path / str(number), name, size, changes)


@pytest.mark.parametrize("name", DECODERS)
def test_greedy_search_generates_their_tokens(name: str, tmp_path: Path) -> None:
    model = write_decoder(tmp_path / "m", name, {**SIZE, "n_heads": 4, "width": 16}, **VARIANTS[name][0])
    bundle = import_huggingface(tmp_path / "m")
    bundle.save(tmp_path / "bundle")
    task: Any = load(tmp_path / "bundle").task
    for prompt in ("the cat", "dogs and", "é猫"):
        ids = [0, *(task.tokenizer.numbering.theirs[number] for number in task.tokenizer.encode(prompt))]
        written = model.generate(
            torch.tensor([ids]), max_new_tokens=12, do_sample=False, pad_token_id=0, use_cache=True
        )[0, len(ids) :].tolist()
        expected = written[: written.index(0)] if 0 in written else written
        settings = DecodeSettings(method="greedy", max_new_tokens=12)
        found = task.generate_one(task.model_input(prompt), settings)[0].ids
        assert [task.tokenizer.numbering.theirs[number] for number in found] == expected


SEQ2SEQ: dict[str, str] = {
    "Marian": "MarianMTModel",
    "Bart": "BartForConditionalGeneration",
    "MBart": "MBartForConditionalGeneration",
    "Pegasus": "PegasusForConditionalGeneration",
    "M2M100": "M2M100ForConditionalGeneration",
    "T5": "T5ForConditionalGeneration",
}
SEQ2SEQ_VARIANTS: dict[str, list[dict[str, Any]]] = {
    "Marian": [{"activation_function": "swish", "scale_embedding": True}, {"activation_function": "gelu"}],
    "Bart": [{}, {"scale_embedding": True, "forced_bos_token_id": 5}],
    "MBart": [{"activation_function": "gelu", "forced_bos_token_id": 7}, {"forced_bos_token_id": 5}],
    "Pegasus": [{"scale_embedding": True}],
    "M2M100": [{"scale_embedding": True, "forced_bos_token_id": 6, "decoder_start_token_id": 1}],
    "T5": [{}, {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}, {"feed_forward_proj": "gated-gelu"}],
}


def write_seq2seq(folder: Path, name: str, size: dict[str, int], **changes: Any) -> Any:
    """A random encoder–decoder in a folder; its decoder starts with the padding token."""
    special = {"vocab_size": N_IDS, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    if name == "T5":
        own = {
            "d_model": size["width"],
            "d_kv": 5,
            "d_ff": size["inner"],
            "num_layers": size["n_layers"],
            "num_decoder_layers": 2,
            "num_heads": size["n_heads"],
            "relative_attention_num_buckets": 8,
            "relative_attention_max_distance": 12,
            "n_positions": 40,
        }
    else:
        own = {"d_model": 2 * size["width"], "max_position_embeddings": 40, "decoder_layers": 2}
        own |= {"encoder_layers": size["n_layers"]}
        for stack in ("encoder", "decoder"):
            own |= {f"{stack}_attention_heads": size["n_heads"], f"{stack}_ffn_dim": size["inner"]}
        special |= {"bos_token_id": 4, "forced_eos_token_id": None}
    config = getattr(transformers, f"{name}Config")(**own, **{**special, **changes})
    model = foreign.randomize(getattr(transformers, SEQ2SEQ[name])(config), size["seed"])
    if name != "T5":
        model.final_logits_bias = 0.1 * torch.randn(1, N_IDS, generator=torch.Generator().manual_seed(1))
    model.generation_config.forced_bos_token_id = changes.get("forced_bos_token_id")
    tokens = foreign.metaspace(N_IDS, ("<pad>", "</s>", "<unk>"), closes="</s>")
    foreign.write_folder(folder, model, tokens, {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"})
    return model


def check_seq2seq(folder: Path, name: str, size: dict[str, int], changes: dict[str, Any]) -> None:
    model = write_seq2seq(folder, name, size, **changes)
    bundle = import_huggingface(folder)
    assert bundle.kind == "seq2seq"
    ids, is_real = foreign.padded(size["seed"], N_IDS, (0, 1), "right")
    target, target_is_real = foreign.padded(size["seed"] + 1, N_IDS, (0, 1), "right")
    with torch.no_grad():
        expected = model(
            input_ids=ids.masked_fill(~is_real, 0), attention_mask=is_real.long(), decoder_input_ids=target
        )
        memory = bundle.task.model.encode(ours(bundle, ids, is_real), is_real)
        found = bundle.task.model(
            ours(bundle, ids, is_real), ours(bundle, target, target_is_real | True), source_is_real=is_real
        )[..., theirs(bundle)]
    torch.testing.assert_close(memory[is_real], expected.encoder_last_hidden_state[is_real], **CLOSE)
    torch.testing.assert_close(found, expected.logits, **CLOSE)


@pytest.mark.parametrize("name", SEQ2SEQ)
@given(data=st.data())
@quick
def test_an_encoder_decoder_computes_the_logits_of_transformers(name: str, data: Any, tmp_path: Path) -> None:
    size, changes = data.draw(st.tuples(sizes(), st.sampled_from(SEQ2SEQ_VARIANTS[name])))
    check_seq2seq(tmp_path / str(len(list(tmp_path.iterdir()))), name, size, changes)


@pytest.mark.proof
@pytest.mark.parametrize("name", SEQ2SEQ)
@given(data=st.data())
@thorough
def test_50_encoder_decoders_of_each_family(name: str, data: Any, tmp_path: Path) -> None:
    size, changes = data.draw(st.tuples(sizes(), st.sampled_from(SEQ2SEQ_VARIANTS[name])))
    check_seq2seq(tmp_path / str(len(list(tmp_path.iterdir()))), name, size, changes)


@pytest.mark.parametrize("name", SEQ2SEQ)
def test_greedy_translation_generates_their_tokens(name: str, tmp_path: Path) -> None:
    model = write_seq2seq(tmp_path / "m", name, SIZE, **SEQ2SEQ_VARIANTS[name][-1])
    bundle = import_huggingface(tmp_path / "m")
    bundle.save(tmp_path / "bundle")
    task: Any = load(tmp_path / "bundle").task
    for text in ("the cat", "a dog sleeps.", "x"):
        source = [token.id for token in task.model_input(text).source]
        ids = torch.tensor([[task.tokenizer.numbering.theirs[number] for number in source]])
        written = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=10, do_sample=False, num_beams=1,
            bad_words_ids=[[0], [2]], use_cache=True,
        )[0, 1 + len(task.tokenizer.leads) :].tolist()  # fmt: skip
        expected = written[: written.index(1)] if 1 in written else written
        settings = DecodeSettings(method="greedy", max_new_tokens=10 - len(task.tokenizer.leads))
        found = task.generate_one(task.model_input(text), settings)[0].ids
        assert [task.tokenizer.numbering.theirs[number] for number in found] == expected
        (translations,) = task.predict([text], DecodeSettings(method="greedy", max_new_tokens=10))
        assert translations.answer is not None
