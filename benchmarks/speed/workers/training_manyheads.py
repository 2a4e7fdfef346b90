"""manyheads in training: its own training task and training loop.

MANYHEADS_SRC is the source tree to import, if set. MANYHEADS_PRECISION is train.precision, such as "bfloat16".
"""

import os
import sys
import time
from collections.abc import Mapping
from typing import Any

if os.environ.get("MANYHEADS_SRC"):
    sys.path.insert(0, os.environ["MANYHEADS_SRC"])

from turns import Ids, serve

from manyheads.data import PairBatch
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks.seq2seq import Seq2SeqSettings, Seq2SeqTrainingTask
from manyheads.training.loop import Trainer
from manyheads.training.settings import TrainSettings


class Manyheads:
    def __init__(self, size: Mapping[str, Any]) -> None:
        model_settings = ModelSettings(
            vocab_size=size["vocab_size"],
            n_encoder_layers=size["layers"],
            n_decoder_layers=size["layers"],
            width=size["width"],
            feed_forward_width=size["feed_forward_width"],
            n_heads=size["n_heads"],
            dropout=size["dropout"],
            attention_dropout=size["inner_dropout"],
            feed_forward_dropout=size["inner_dropout"],
        )
        self.model = Transformer(model_settings)
        # Tokenizer and training data are not needed: the batches exist already.
        self.training_task = Seq2SeqTrainingTask(self.model, None, Seq2SeqSettings(smoothing=size["smoothing"]), None)
        precision = os.environ.get("MANYHEADS_PRECISION", "auto")
        settings = TrainSettings(learning_rate=size["learning_rate"], warmup=1, clip_norm=1.0, precision=precision)
        self.trainer = Trainer(self.model, self.training_task, settings, width=size["width"], seed=1)

    def prepare(self, ids: Ids) -> Any:
        return self.training_task._to_tensors(PairBatch(*(part.numpy() for part in ids)))

    def step(self, prepared: Any) -> float:
        return self.trainer._update([[]], [prepared], time.perf_counter()).loss


if __name__ == "__main__":
    serve(["manyheads"], Manyheads)
