"""Settings of the seq2seq task."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from manyheads.settings import Range, raise_faults, shown, type_faults

_LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, kw_only=True)
class Seq2SeqSettings:
    """What the target is to the source, and the loss."""

    kind: Literal["seq2seq"] = "seq2seq"  # generate one text from another
    purpose: Literal["translation", "summary", "dialogue"] = "translation"  # summaries are also scored with ROUGE
    turns: str = " | "  # joins the turns of a dialogue, if a source is a list of them (JSONL, Parquet)
    source_language: str = ""  # language code of the source, such as "en"
    target_language: str = ""  # language code of the target; it selects the tokenizer of BLEU
    # ε of label smoothing; above 0.9 the correct token would be the least likely.
    smoothing: Annotated[float, Range(0, 0.9)] = 0.1
    # R-Drop's α: weight of the agreement of two passes with different dropout, such as 5; 0: one pass.
    consistency: Annotated[float, Range(0)] = 0.0
    # The step after which R-Drop starts; it doubles the cost of a step.
    consistency_after: Annotated[int, Range(0, 1_000_000_000)] = 0

    def __post_init__(self) -> None:
        faults = type_faults(self, "task.")
        if not faults:
            faults += [
                f'task.{name} = {shown(code)} should be a language code, like "en", "zh" or "pt-BR".'
                for name, code in (("source_language", self.source_language), ("target_language", self.target_language))
                if code and not _LANGUAGE_CODE.fullmatch(code)
            ]
        raise_faults(faults)

    @property
    def loss_terms(self) -> dict[str, float]:
        """What the loss contains beside the cross-entropy."""
        terms = {"label smoothing": self.smoothing, "R-Drop": self.consistency}
        return {name: weight for name, weight in terms.items() if weight}
