"""What is proposed for a pretrained encoder."""

import pytest

from manyheads.errors import BundleError
from manyheads.tasks import Embed, EmbedSettings, Language, LanguageSettings
from manyheads.tasks.pretrained import NOTHING, UPPER, WHOLE, Pretrained, epochs_for, window_note

from tasks.small import make_task

ROWS = [("two cats are sleeping",), ("a dog is running",)]


def test_an_encoder_is_described_by_its_bundle() -> None:
    task = make_task(Embed, EmbedSettings(pooling="first", max_tokens=50), ROWS, n_encoder_layers=4)
    origin = Pretrained.of(task, "there")
    assert (origin.pooling, origin.max_length) == ("first", 50)
    assert origin.frozen_parts(WHOLE) == ["source_embedding"]
    assert origin.frozen_parts(UPPER) == ["source_embedding", "encoder.0", "encoder.1"]
    assert origin.frozen_parts(NOTHING) == ["source_embedding", "encoder"]


def test_a_model_without_an_encoder_is_refused() -> None:
    task = make_task(Language, LanguageSettings(), ROWS, shape="decoder", n_decoder_layers=1)
    with pytest.raises(BundleError, match=r"there has no encoder: it is a bundle of the task language"):
        Pretrained.of(task, "there")


def test_the_length_is_that_of_nearly_all_texts() -> None:
    origin = Pretrained.of(make_task(Embed, EmbedSettings(), ROWS, max_length=512), "there")
    assert origin.length_for([5] * 200) == 32
    assert origin.length_for([5] * 99 + [100] * 2) == 128
    assert origin.length_for([400] * 100) == 512
    short = Pretrained.of(make_task(Embed, EmbedSettings(), ROWS, max_length=48), "there")
    assert short.length_for([400] * 100) == 48


def test_fewer_rows_of_a_label_get_more_epochs() -> None:
    assert epochs_for(77 * 130, 77) == pytest.approx(4)
    assert 1.5 < epochs_for(9000, 2) < 1.8
    assert (epochs_for(10, 2), epochs_for(10**7, 2)) == (8.0, 1.0)


def test_long_texts_are_mentioned() -> None:
    assert window_note([10, 20], 32) == []
    (note,) = window_note([10] * 99 + [40], 32)
    assert str(note) == "1.0 % of the texts have more than 32 tokens; they are read in windows, none is cut."
