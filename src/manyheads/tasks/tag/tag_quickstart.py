"""The quickstart of tag: entities and intents of simple sentences."""

from manyheads.messages import Message
from manyheads.tasks.quickstart import Demo, Predict, Quickstart

# "Table" occurs as a thing and as a location.
SENTENCES: dict[str, tuple[str, ...]] = {
    "en": (
        "Two days ago Anna's sister bought a red scarf at the market.",
        "The cup is on the table.",
        "Where did the man buy the table?",
        "Please give the old teacher a cup of tea.",
    ),
    "zh": (
        "两天前安娜的妹妹在市场上买了一条红色的围巾。",
        "那个杯子在桌子上。",
        "那个男人是在哪里买那张桌子的？",
        "请给我那杯茶。",
    ),
    "de": (
        "Vor zwei Tagen hat Annas Schwester auf dem Markt einen roten Schal gekauft.",
        "Die Tasse steht auf dem Tisch.",
        "Wo hat der Mann den Tisch gekauft?",
        "Bitte gib dem alten Lehrer eine Tasse Tee.",
    ),
}


def demo(predict: Predict, language: str) -> Demo:
    """Return sentences with their entities and intents."""
    lines = [("", prediction.line()) for prediction in predict(SENTENCES[language])]
    return Demo(Message("Who, what, where, when"), lines)


QUICKSTART = Quickstart(
    name="tag",
    title=Message("tag entities and intents"),
    steps=500,
    recipe={
        "task": {"kind": "tag", "intents": True, "baseline": False},
        "tokenizer": {"kind": "bpe", "vocab_size": 1200},
        "model": {"n_encoder_layers": 2},
        "train": {"batch_tokens": 1500, "learning_rate": 3e-3, "warmup": 100, "validate_every": 100},
    },
    examples={language: texts[1:3] for language, texts in SENTENCES.items()},
    own_data=Message("YOUR.conll   (a word and its tag per line)"),
    demo=demo,
)
