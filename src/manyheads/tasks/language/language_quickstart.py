"""The quickstart of language: continue stories, and check that they are consistent."""

from collections.abc import Sequence
from itertools import islice

from manyheads import corpora
from manyheads.corpora.story_parser import first_sentence
from manyheads.language import pick
from manyheads.messages import Message, _
from manyheads.tasks.quickstart import Demo, Predict, Quickstart
from manyheads.text.suggestions import shortened

_N_STORIES, _N_SHOWN = 100, 3
_LONGEST = 400  # characters shown of a story


def demo(predict: Predict, language: str) -> Demo:
    """Return stories that begin with unseen sentences, and how many of them are consistent."""
    rows = islice(corpora.rows("generate", language, "test", _N_STORIES, 2), _N_STORIES)
    beginnings = [first_sentence(text) for (text,) in rows]
    stories = [prediction.line() for prediction in predict(beginnings)]
    lines = [
        (beginning, shortened(story[len(beginning) :], _LONGEST))
        for beginning, story in list(zip(beginnings, stories, strict=True))[:_N_SHOWN]
    ]
    if language != "de":  # the story parser knows English and Chinese
        lines += _consistency(stories)
    return Demo(Message("Stories that begin with unseen sentences"), lines)


def _consistency(stories: Sequence[str]) -> list[tuple[str, str]]:
    faults = [corpora.story_faults(story) for story in stories]
    n_consistent = sum(not found for found in faults)
    summary = _(
        "{n_consistent} of {n_stories} such stories are consistent: people, pronouns, things, locations and "
        "times agree.",
        n_consistent=n_consistent,
        n_stories=len(stories),
    )
    lines = [("", summary)]
    for story, found in zip(stories, faults, strict=True):
        if found:
            lines.append(("", f"{pick('An inconsistent one:', '不一致的一例：')} {shortened(story, _LONGEST)}"))
            lines.append(("", f"  ({shortened(found[0])})"))
            break
    return lines


QUICKSTART = Quickstart(
    name="generate",
    title=Message("generate stories"),
    steps=800,
    recipe={
        "task": {"kind": "language"},
        "tokenizer": {"kind": "bpe", "vocab_size": 1200},
        "model": {"n_decoder_layers": 2},
        "train": {"batch_tokens": 3000, "learning_rate": 3e-3, "warmup": 100, "validate_every": 200},
        "decode": {"method": "sample", "top_p": 0.9, "max_new_tokens": 150},
    },
    examples={
        "en": ("Last Sunday Anna lost her key in the park.",),
        "zh": ("上个星期天安娜在公园里弄丢了她的钥匙。",),
        "de": ("Letzten Sonntag hat Anna ihren Schlüssel im Park verloren.",),
    },
    own_data=Message("YOUR-FOLDER   (of .txt files)"),
    takes_prompt=True,
    demo=demo,
)
