"""Names of the statistics of heads in both languages; `lens/roles/measures.py` defines the statistics."""

from manyheads.lens.roles.role_names import role_names
from manyheads.messages import Message

_NAMES = {
    "importance": Message("importance (gradient)"),
    "role_score": Message("margin over the threshold of a role"),
    "aer": Message("alignment error rate (AER)"),
    "strength": Message("share of its layer's output"),
    "confidence": Message("largest weight"),
    "entropy": Message("entropy (bits)"),
    "spread": Message("entropy relative to uniform weights"),
    "distance": Message("mean offset (positions)"),
    "near": Message("weight within two positions"),
    "weight-1": Message("weight on the previous token"),
    "weight+1": Message("weight on the next token"),
    "bos": Message("weight on BOS"),
    "eos": Message("weight on EOS"),
    "punctuation": Message("weight on punctuation"),
    "rare": Message("largest weight on a rare token"),
    "duplicate": Message("weight on the same token elsewhere"),
    "induction": Message("weight on the token after an earlier occurrence"),
}
_MAPS = {"weights": ("weights", "权重"), "norms": ("norms", "范数")}
_TOKENS = {"read": ("token read", "读入的词元"), "written": ("token written", "写出的词元")}


def statistic_names(name: str) -> Message:
    """Return the name of a statistic or measure for people."""
    if name in _NAMES:
        return _NAMES[name]
    if name.startswith("offset"):
        offset = name.removeprefix("offset").replace("-", "−")
        return Message("largest weight at offset {offset}", offset=offset)
    if name.startswith("align "):
        _, kind, token = name.split(" ")
        return Message(f"AER ({_MAPS[kind][0]}, {_TOKENS[token][0]})", f"AER（{_MAPS[kind][1]}，{_TOKENS[token][1]}）")
    english, chinese = role_names(name)
    return Message(f"{english}: correct", f"{chinese}：正确率")
