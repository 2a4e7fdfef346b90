"""The quickstart of seq2seq: translate simple sentences between English, Chinese and German."""

from manyheads.messages import Message
from manyheads.tasks.quickstart import Quickstart

QUICKSTART = Quickstart(
    name="translate",
    title=Message("translate"),
    n_languages=2,
    steps=1000,
    recipe={
        "data": {"builtin_rows": 100_000},
        # Large enough that most words written in letters are one token.
        "tokenizer": {"kind": "bpe", "vocab_size": 3000, "chinese_characters": "split"},
        "model": {"n_encoder_layers": 4, "n_decoder_layers": 2, "positions": "rotary"},
        "train": {"batch_tokens": 1500, "learning_rate": 4e-3, "warmup": 150, "validate_every": 100},
    },
    examples={
        "en": ("Two cats are sleeping.", "The teacher did not buy the red book.", "Who is reading the book?"),
        "zh": ("两只猫正在睡觉。", "那位教师没有买那本红色的书。", "谁正在读那本书？"),
        "de": ("Zwei Katzen schlafen.", "Der Lehrer hat das rote Buch nicht gekauft.", "Wer liest das Buch?"),
    },
    own_data=Message("YOUR.en YOUR.zh"),
)
