"""The quickstart of classify: is an opinion positive, negative or neither?"""

from manyheads.messages import Message
from manyheads.tasks.quickstart import Demo, Predict, Quickstart

# The same word asserted, negated, doubted and asked about.
OPINIONS: dict[str, tuple[str, ...]] = {
    "en": (
        "This hotel is expensive.",
        "This hotel is not expensive.",
        "I do not think that this hotel is expensive.",
        "Is this hotel expensive?",
        "This hotel is expensive, but it is comfortable.",
    ),
    "zh": (
        "这家酒店很贵。",
        "这家酒店不贵。",
        "我不觉得这家酒店很贵。",
        "这家酒店贵吗？",
        "这家酒店很贵，但是它很舒适。",
    ),
    "de": (
        "Dieses Hotel ist teuer.",
        "Dieses Hotel ist nicht teuer.",
        "Ich denke nicht, dass dieses Hotel teuer ist.",
        "Ist dieses Hotel teuer?",
        "Dieses Hotel ist teuer, aber es ist bequem.",
    ),
}


def demo(predict: Predict, language: str) -> Demo:
    """Return the labels of five sentences about one word."""
    texts = OPINIONS[language]
    lines = [(prediction.line(), f"  {text}") for text, prediction in zip(texts, predict(texts), strict=True)]
    return Demo(Message("One word, five sentences"), lines)


QUICKSTART = Quickstart(
    name="classify",
    title=Message("classify opinions"),
    steps=500,
    recipe={
        "task": {"kind": "classify", "smoothing": 0.0},
        "tokenizer": {"kind": "bpe", "vocab_size": 1200},
        "model": {"n_encoder_layers": 2},
        "train": {"batch_tokens": 1500, "learning_rate": 3e-3, "warmup": 100, "validate_every": 100},
    },
    examples={language: texts[1:4:2] for language, texts in OPINIONS.items()},
    own_data=Message("YOUR.csv   (columns: text, label)"),
    demo=demo,
)
