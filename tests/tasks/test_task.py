"""What tasks tell other packages: their kind, the form of their answers, and what they can do."""

from pathlib import Path

import pytest
import torch

from manyheads.decode import DecodeSettings, EngineSelector
from manyheads.tasks import TASKS, GenerativeTask, LabelingTask, PairTask, TaskSettings

from lens.answering import CASES, answering

FORMS = {"seq2seq": "text", "classify": "labels", "tag": "spans", "language": "continuation", "masked": "masks"}
FORMS["embed"] = "vector"


@pytest.mark.parametrize("kind", TASKS)
def test_every_task_tells_what_its_answers_are(kind: str) -> None:
    task = TASKS[kind]
    assert task.answer_form == FORMS[kind]
    assert issubclass(task, GenerativeTask) == (FORMS[kind] in ("text", "continuation"))
    assert issubclass(task, PairTask) == (FORMS[kind] == "text")
    assert issubclass(task, LabelingTask) == (FORMS[kind] in ("labels", "spans"))
    assert bool(task.mask_text) == (FORMS[kind] == "masks")
    assert issubclass(task.settings_type, TaskSettings)


@pytest.mark.parametrize("case", CASES)
def test_defaults(case: str) -> None:
    task = answering(case)
    assert task.continues_prompts == (task.answer_form == "continuation")
    assert isinstance(task.settings.loss_terms, dict)
    assert task.folder_files(Path("missing"), {}) is None
    names = {name for name, _ in task.module.named_parameters()} | {name for name, _ in task.module.named_buffers()}
    assert task.sparse_weights() <= names
    engine = EngineSelector("torch")
    assert (task.with_engine(engine) is task) == (not isinstance(task, PairTask))
    if not isinstance(task, PairTask):
        assert task.text_to_read("the cat") == ("the cat", ())


def test_a_task_streams_its_whole_answer_by_default() -> None:
    task = answering("seq2seq")
    assert isinstance(task, GenerativeTask)
    torch.manual_seed(1)
    settings = DecodeSettings(method="greedy")
    assert list(task.stream("the cat sat", settings)) == [task.predict(["the cat sat"], settings)[0].answer]
