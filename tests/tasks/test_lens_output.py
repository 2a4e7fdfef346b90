"""The output that the lens shows: equal to `predict`, with probabilities of the same forward pass."""

import json
from dataclasses import replace

import pytest
import torch

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import LensError
from manyheads.lens.aligner import choose_aligner
from manyheads.lens.interventions import answer_text, write_answer
from manyheads.tasks import ModelInput, Seq2Seq, Seq2SeqSettings
from manyheads.tasks.lens_output import LensProbe, token_text, top_tokens
from manyheads.text.tokens.text_profile import TextProfile
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, TokenizerSettings

from lens.answering import BEAM, CASES, GREEDY, READING, WRITING, answering
from tasks.makers import DOCUMENTS, TOKENIZERS, make_model


@pytest.mark.parametrize("case", WRITING)
@pytest.mark.parametrize("decode", [GREEDY, BEAM, DecodeSettings(method="sample", max_new_tokens=5)])
def test_written_answer_equals_that_of_predict(case: str, decode: DecodeSettings) -> None:
    task, text = answering(case), CASES[case]
    model_input = answer_text(task, text, decode).model_input
    output = task.lens_output(model_input)
    (expected,) = task.predict([text], decode)
    assert output.answer == expected.answer
    assert output.log_probability == pytest.approx(expected.candidates[0].log_probability, abs=1e-4)
    assert len(output.tokens) == len(model_input.written) - output.first
    assert output.notes == ()


@pytest.mark.parametrize("case", WRITING)
def test_probabilities_are_those_of_one_forward_pass(case: str) -> None:
    task = answering(case)
    model_input = answer_text(task, CASES[case], GREEDY).model_input
    output = task.lens_output(model_input)
    source, target = (
        torch.tensor([[token.id for token in side]]) if side else None
        for side in (model_input.source, model_input.target)
    )
    with torch.no_grad():
        probabilities = task.model(source, target)[0].softmax(-1)
    for number, token in enumerate(output.tokens):
        row = probabilities[output.first + number]
        written = model_input.written[output.first + number]
        assert token.probability == pytest.approx(float(row[written.id]), abs=1e-6)
        assert len(token.alternatives) == 5
        assert all(one.probability == pytest.approx(float(row[one.id]), abs=1e-6) for one in token.alternatives)
        ranked = [one.probability for one in token.alternatives]
        assert ranked == sorted(ranked, reverse=True)
        assert written.id == token.alternatives[0].id  # greedy
    if model_input.last and model_input.last.id == EOS:
        assert output.tokens[-1].text == "EOS"


def test_the_first_token_of_a_continuation_follows_the_prompt() -> None:
    task = answering("language")
    output = task.lens_output(task.model_input("the dog", " ran to"))
    assert output.first == 2  # BOS, the, dog
    assert [token.text for token in output.tokens] == [" ran", " to", "EOS"]


def test_without_an_answer_nothing_is_written() -> None:
    for case in ("seq2seq", "language"):
        output = answering(case).lens_output(answering(case).model_input("the dog"))
        assert (output.tokens, output.log_probability, output.answer) == ((), None, "")


def test_bytes_of_a_character_are_merged() -> None:
    task = answering("seq2seq")
    output = task.lens_output(task.model_input("the cat", "the 爱 mat"))
    assert [token.text for token in output.tokens] == ["the", " ", "爱", "", "", " mat", "EOS"]
    assert "".join(token.text for token in output.tokens[:-1]) == "the 爱 mat"


def test_names_of_tokens() -> None:
    tokenizer = TOKENIZERS["bpe"]
    assert token_text(tokenizer, EOS) == "EOS"
    assert token_text(tokenizer, tokenizer.encode("the")[0]) == " the"
    ids = tokenizer.encode("爱")[-3:]
    assert [tokenizer.byte_of(one) for one in ids] == list("爱".encode())
    assert token_text(tokenizer, ids[2], ids[:2]) == "爱"
    assert token_text(tokenizer, ids[2], [*ids, *ids[:2]]) == "爱"
    assert token_text(tokenizer, ids[1], ids[:1]) == "<0x88>"
    assert token_text(tokenizer, ids[0]) == "<0xE7>"


@pytest.mark.parametrize("case", [case for case in READING if case.startswith("classify")])
def test_labels_equal_those_of_predict(case: str) -> None:
    task, text = answering(case), CASES[case]
    (expected,) = task.predict([text], GREEDY)
    output = task.lens_output(task.model_input(text))
    assert output.answer == expected.answer
    assert {one.name: one.probability for one in output.labels} == expected.probabilities
    assert [one.name for one in output.labels] == list(expected.probabilities)
    assert output.ngram_share == expected.ngram_share
    assert (output.ngram_share is None) == (task.linear is None)
    assert torch.tensor(output.log_probability).exp() == pytest.approx(expected.probability, abs=1e-6)


@pytest.mark.parametrize("case", [case for case in READING if case.startswith("tag")])
def test_spans_equal_those_of_predict(case: str) -> None:
    task, text = answering(case), CASES[case]
    (expected,) = task.predict([text], GREEDY)
    output = task.lens_output(task.model_input(text))
    assert output.answer == expected.line()
    assert [(one.start, one.end, one.label, one.probability) for one in output.spans] == [
        (one.start, one.end, one.label, one.probability) for one in expected.spans
    ]
    assert {one.name: one.probability for one in output.labels} == expected.probabilities
    assert (output.ngram_share is None) == (task.linear is None)
    assert output.log_probability is not None and output.log_probability < 0


def test_probability_of_tags_is_that_of_the_path_and_the_intent() -> None:
    task = answering("tag, Transformer alone")
    output = task.lens_output(task.model_input("dog"))  # one word: the probability of its tag
    assert not output.labels
    (tagged,) = task.word_tagger.tag([["dog"]])
    allowed = [0, 4]  # O or S-a: a single word is no part of a longer span
    expected = tagged.scores[0, allowed].log_softmax(-1)[allowed.index(tagged.path[0])]
    assert output.log_probability == pytest.approx(float(expected), abs=1e-5)
    joint = answering("tag")
    found = joint.lens_output(joint.model_input("Ada"))
    (tagged,) = joint.word_tagger.tag([["Ada"]])
    expected = tagged.scores[0, [0, 4, 8]].log_softmax(-1)[[0, 4, 8].index(tagged.path[0])]
    intent = torch.tensor(found.labels[0].probability).log()
    assert found.log_probability == pytest.approx(float(expected + intent), abs=1e-5)


def test_masks_equal_those_of_predict() -> None:
    task, text = answering("masked"), CASES["masked"]
    (expected,) = task.predict([text], GREEDY)
    output = task.lens_output(task.model_input(text))
    assert output.answer == expected.answer
    assert [text[mask.start : mask.end] for mask in output.masks] == ["[MASK]", "[MASK]"]
    for mask, gap in zip(output.masks, expected.gaps, strict=True):
        assert [one.text for one in mask.alternatives] == [one.text for one in gap]
        assert [one.probability for one in mask.alternatives] == pytest.approx([one.probability for one in gap])
    best = torch.tensor([mask.alternatives[0].probability for mask in output.masks])
    assert output.log_probability == pytest.approx(float(best.log().sum()), abs=1e-5)


def test_text_without_a_mask_is_shown_with_a_note() -> None:
    task = answering("masked, without masks")
    output = task.lens_output(task.model_input("the cat sat"))
    assert (output.answer, output.masks, output.log_probability) == ("the cat sat", (), None)
    assert str(output.notes[0]) == "The text has no [MASK]: write it where the model is to predict a token."


@pytest.mark.parametrize("case", CASES)
def test_output_is_json(case: str) -> None:
    task = answering(case)
    model_input = write_answer(task, CASES[case], GREEDY)
    assert isinstance(task.lens_probe(model_input), LensProbe)
    table = json.loads(json.dumps(task.lens_output(model_input).to_json()))
    names = "task answer tokens first labels ngram_share spans masks alignment log_probability notes"
    assert list(table) == names.split()
    assert all(list(note) == ["en", "zh"] for note in table["notes"])


def test_text_that_predict_divides_is_one_input_with_a_note() -> None:
    task = replace(answering("seq2seq"), longest_source=9)
    text = "the cat sat on the mat. the dog ran to the cat."
    answered = answer_text(task, text, GREEDY)
    output = task.lens_output(answered.model_input)
    assert output.answer == task.generate_one(task.model_input(text), GREEDY)[1].answer
    (note,) = output.notes
    assert str(note).startswith("`manyheads predict` translates this text in 2 parts. Here the model reads it as one")
    assert "分成 2 部分" in note.by_language()["zh"]
    assert not task.lens_output(task.model_input("the cat", "the mat")).notes


def test_text_is_read_as_predict_normalizes_it() -> None:
    task = replace(answering("seq2seq"), profile=TextProfile.of(['the "cat" sat on the mat.'] * 50))
    text = "the  “cat” sat"
    answered = answer_text(task, text, GREEDY)
    assert answered.model_input.text == 'the "cat" sat'
    assert str(answered.notes[0]) == 'The model reads the text as “the "cat" sat”: it was trained on such text.'
    assert task.lens_output(answered.model_input).answer == task.predict([text], GREEDY)[0].answer
    assert answer_text(task, " the cat ", GREEDY).notes == ()
    assert len(str(task.text_to_read("“cat” " * 500)[1][0])) < 200
    upper = answer_text(task, "THE CAT SAT", GREEDY)
    assert upper.model_input.text == "The cat sat"
    assert "writes this answer in capitals" in str(upper.notes[1])
    address = answer_text(task, "the cat sat on https://example.org/mat now", GREEDY)
    assert address.model_input.text == "the cat sat on now"
    assert str(address.notes[1]).startswith("`manyheads predict` appends https://example.org/mat to the answer")
    plain = replace(task, settings=Seq2SeqSettings(purpose="summary"))
    assert answer_text(plain, text, GREEDY).model_input.text == text


def test_answer_of_a_second_search_equals_that_of_predict() -> None:
    """After a loop, `predict` decodes again without repetition."""
    task, decode = answering("seq2seq"), DecodeSettings(method="greedy", max_new_tokens=40)
    looping = [
        text
        for text in ("the cat", "red mat", "the dog ran to the cat", "no", "no dog sat", "a cat.", "mat was red")
        if "repetition" in task.predict([text], decode)[0].warnings
    ]
    assert looping
    for text in looping:
        written = write_answer(task, text, decode)
        assert written.answer == task.predict([text], decode)[0].answer


def test_placeholders_are_shown_as_what_they_stand_for() -> None:
    lines = [*DOCUMENTS * 20, "the ⟦1⟧ cat"]
    tokenizer = Tokenizer.train(lines, TokenizerSettings(vocab_size=400, placeholders=4))
    task = Seq2Seq(make_model(tokenizer, "encoder-decoder"), tokenizer, Seq2SeqSettings())
    output = task.lens_output(task.model_input("the cat `x_y` sat", "no `x_y` mat"))
    assert "`x_y`" in [token.text.strip() for token in output.tokens]
    assert output.answer == "no `x_y` mat"


def test_full_context_is_noted() -> None:
    task = answering("language")
    model_input = answer_text(task, "the dog", DecodeSettings(method="greedy", max_new_tokens=100)).model_input
    if len(model_input.target) < task.model.settings.max_length:
        model_input = _cut(model_input, task.model_input("the dog", " cat" * 45), task.model.settings.max_length)
    (note,) = task.lens_output(model_input).notes
    assert str(note).startswith("The answer ends where the context of 48 tokens is full")


def _cut(model_input: ModelInput, long: ModelInput, context: int) -> ModelInput:
    assert len(long.target) >= context
    return replace(long, target=long.target[:context], last=long.target[-1])


def test_alignment_is_that_of_predict_align(untrained: Bundle) -> None:
    aligner = choose_aligner(untrained, "bundle")
    text = "The cat sees the dog."
    model_input = answer_text(untrained.task, text, untrained.decode, "猫看见狗。").model_input
    output = aligner.align_output(text, untrained.task.lens_output(model_input))
    (links,) = aligner.align([text], ["猫看见狗。"])
    assert len(output.alignment) == len(links) > 0
    words = ["The", "cat", "sees", "the", "dog", "."]
    assert [(text[slice(*one.source)], one.target[0]) for one in output.alignment] == [(words[i], j) for i, j in links]


@pytest.mark.parametrize(
    ("case", "position", "instead", "message"),
    [
        ("seq2seq", 99, 7, r"^Nothing is chosen at position 99\. Allowed: 0 to \d+\.$"),
        ("seq2seq", 0, 400, r"^400 is not a token id of this model\. Give a number from 0 to \d+\.$"),
        ("language", 0, "cat", r"^'cat' is not a token id of this model\."),
        ("masked", 1, 7, r"^Nothing is chosen at position 1\. Allowed: the masks at 2, 6\.$"),
        ("classify", 0, "good", r"^Nothing is chosen at position 0\. Allowed: −1, for the label of the text\.$"),
        ("classify", -1, "godo", r"^'godo' is not a label of this model\. Did you mean good\?$"),
        ("classify", -1, 3, r"^3 is not a label of this model\. "),
        ("tag", 0, "O", r"^Nothing is chosen at position 0\. Allowed: 1 to \d+ for tags, −1 for the intent\.$"),
        ("tag", 1, "S-PERS", r"^'S-PERS' is not a tag of this model\. Did you mean S-PER\?$"),
        ("tag", -1, "aks", r"^'aks' is not an intent of this model\. Did you mean ask\?$"),
        ("tag, Transformer alone", -1, "ask", r"^'ask' is not an intent of this model\. This model has no intents\.$"),
    ],
)
def test_unknown_choice_is_refused(case: str, position: int, instead: int | str, message: str) -> None:
    task = answering(case)
    probe = task.lens_probe(write_answer(task, CASES[case], GREEDY))
    with pytest.raises(LensError, match=message):
        probe.alternatives(position, instead)


@pytest.mark.parametrize(("n_tokens", "n_found"), [(20, 5), (8, 5), (6, 3)])
def test_alternatives_are_the_best_tokens_that_may_be_written(n_tokens: int, n_found: int) -> None:
    tokenizer = TOKENIZERS["bpe"]
    probabilities = torch.arange(n_tokens, 0.0, -1.0).log_softmax(-1)  # PAD, UNK and BOS are the most probable
    found = top_tokens(tokenizer, probabilities)
    allowed = [token for token in range(n_tokens) if token not in (PAD, UNK, BOS)]
    assert [one.id for one in found] == allowed[:n_found]
    assert [one.probability for one in found] == pytest.approx(probabilities.exp()[allowed[:n_found]].tolist())
    last = n_tokens - 1
    assert [one.id for one in top_tokens(tokenizer, probabilities, also=[last])] == [
        *(token for token in allowed[:n_found] if token != last),
        last,
    ]
