"""Small tasks of every kind whose answers the lens shows: with a linear model, several labels, intents, bytes."""

from functools import cache
from typing import Any

import torch

from manyheads.decode import DecodeSettings
from manyheads.tasks import Classify, ClassifySettings, Tag, TagSettings

from lens.makers import TEXTS, task_of
from model.makers import shaken
from tasks.small import make_task
from tasks.test_classify import ROWS as LABELED
from tasks.test_classify import SEVERAL
from tasks.test_tag import ROWS as TAGGED

GREEDY = DecodeSettings(method="greedy", max_new_tokens=6)
BEAM = DecodeSettings(beam=3, max_new_tokens=6)
CASES = {
    "seq2seq": TEXTS["seq2seq"],
    "seq2seq, bytes": "the cat 我爱水课",
    "language": TEXTS["language"],
    "language, ends with a space": "the dog ",
    "masked": TEXTS["masked"],
    "masked, without masks": "the cat sat",
    "classify": "our hotel was awful",
    "classify, several labels": "red and round",
    "classify, Transformer alone": TEXTS["classify"],
    "tag": "Ada lives in  New York.",
    "tag, Transformer alone": TEXTS["tag"],
}
WRITING = [case for case in CASES if case.startswith(("seq2seq", "language"))]
READING = [case for case in CASES if case not in WRITING and case != "masked, without masks"]


@cache
def answering(case: str) -> Any:
    """Return the task of a case. Tests share it, so they must not change its weights."""
    with torch.random.fork_rng(devices=[]):
        match case:
            case "classify":
                task = make_task(Classify, ClassifySettings(), LABELED, n_encoder_layers=2)
                return _settled(task, LABELED)
            case "classify, several labels":
                rows = SEVERAL * 6
                return _settled(make_task(Classify, ClassifySettings(multi_label=True), rows), rows)
            case "tag":
                return _settled(make_task(Tag, TagSettings(intents=True), TAGGED), TAGGED)
    return task_of(case.partition(",")[0])


def _settled(task: Any, rows: Any) -> Any:
    """Return a task whose heads matter, with the linear model mixed in and its probabilities calibrated."""
    shaken(task.module)
    return task.calibrate(rows)
