"""Settings of the seq2seq task."""

import math
import re
from dataclasses import dataclass
from typing import Literal

from manyheads.settings import raise_faults, type_faults

_LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, kw_only=True)
class Seq2SeqSettings:
    """What the target is to the source, and the loss."""

    kind: Literal["seq2seq"] = "seq2seq"  # generate one text from another
    purpose: Literal["translation", "summary", "dialogue"] = "translation"  # summaries are also scored with ROUGE
    turns: str = " | "  # joins the turns of a dialogue, if a source is a list of them (JSONL, Parquet)
    source_language: str = ""  # language code of the source, such as "en"
    target_language: str = ""  # language code of the target; it selects the tokenizer of BLEU
    smoothing: float = 0.1  # ε of label smoothing; above 0.9 the correct token would be the least likely
    consistency: float = 0.0  # R-Drop's α: weight of the agreement of two passes with different dropout; 0: one pass
    consistency_after: int = 0  # the step after which R-Drop starts; it doubles the cost of a step

    def __post_init__(self) -> None:
        faults = type_faults(self, "task.")
        if not faults and not 0.0 <= self.smoothing <= 0.9:
            faults.append(f"task.smoothing = {self.smoothing} must be at least 0 and at most 0.9.")
        if not faults and not 0.0 <= self.consistency < math.inf:
            faults.append(f"task.consistency = {self.consistency} must be at least 0 and finite, like 5.0.")
        if not faults and self.consistency_after < 0:
            faults.append(f"task.consistency_after = {self.consistency_after} must be at least 0.")
        if not faults:
            faults += [
                f'task.{name} = "{code}" should be a language code, like "en", "zh" or "pt-BR".'
                for name, code in (("source_language", self.source_language), ("target_language", self.target_language))
                if code and not _LANGUAGE_CODE.fullmatch(code)
            ]
        raise_faults(faults)
