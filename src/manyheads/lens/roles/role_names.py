"""Names and colors of roles and names of statistics, for the terminal, the pictures and the page.

`role_assignment` defines the roles, `measures` the statistics.
"""

from manyheads.lens.roles.role_assignment import ALIGNMENT, UNKNOWN
from manyheads.messages import Message

_ROLES = {
    ALIGNMENT: Message("alignment"),
    "antecedent": Message("antecedent"),
    "previous-token": Message("previous-token"),
    "next-token": Message("next-token"),
    "attention-sink": Message("attention-sink"),
    "eos": Message("eos"),
    "punctuation": Message("punctuation"),
    "duplicate-token": Message("duplicate-token"),
    "induction": Message("induction"),
    "rare-word": Message("rare-word"),
    UNKNOWN: Message("unknown"),
}
_RELATIONS = {
    "subject": Message("subject"),
    "object": Message("object"),
    "indirect-object": Message("indirect-object"),
    "modifier": Message("modifier"),
    "relative": Message("relative"),
    "nsubj": Message("nsubj"),
    "obj": Message("obj"),
    "iobj": Message("iobj"),
    "amod": Message("amod"),
    "advmod": Message("advmod"),
    "det": Message("det"),
    "case": Message("case"),
}
_STATISTICS = {
    "importance": Message("importance (nats lost without the head)"),
    "importance_mean": Message("importance (nats lost with its mean output)"),
    "importance_resample": Message("importance (nats lost with another text's output)"),
    "gradient": Message("importance by gradient"),
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
    "align weights read": Message("AER (weights, token read)"),
    "align weights written": Message("AER (weights, token written)"),
    "align norms read": Message("AER (norms, token read)"),
    "align norms written": Message("AER (norms, token written)"),
}
# Distinguishable with most kinds of color blindness (Okabe and Ito), by family of roles.
_COLORS = {
    ALIGNMENT: "#0072b2",
    "antecedent": "#cc79a7",
    "relation": "#009e73",
    "previous-token": "#e69f00",
    "next-token": "#e69f00",
    "positional": "#f0e442",
    "attention-sink": "#999999",
    "eos": "#999999",
    "punctuation": "#bbbbbb",
    "duplicate-token": "#d55e00",
    "induction": "#d55e00",
    "rare-word": "#56b4e9",
    UNKNOWN: "#eeeeee",
}


def role_name(role: str) -> str:
    """Return the name of a role in the language in use."""
    return str(role_message(role))


def role_message(role: str) -> Message:
    """Return the name of a role; its reader is known later."""
    relation = _RELATIONS.get(role[:-1], role[:-1])
    if role.endswith(">"):
        return Message("{relation} → head", relation=relation)
    if role.endswith("<"):
        return Message("{relation} → dependent", relation=relation)
    if role.startswith("positional "):
        return Message("positional {offset}", offset=role.removeprefix("positional "))
    return _ROLES.get(role) or Message("{role}", role=role)


def statistic_name(name: str) -> Message:
    """Return the name of a statistic or a measure."""
    if name in _STATISTICS:
        return _STATISTICS[name]
    if name.startswith("offset"):
        offset = name.removeprefix("offset").replace("-", "−")
        return Message("largest weight at offset {offset}", offset=offset)
    return Message("{role}: correct", role=role_message(name))


def role_color(role: str) -> str:
    """Return the color of a role as a hexadecimal RGB value; related roles share one."""
    family = "relation" if role.endswith((">", "<")) else role.partition(" ")[0]
    return _COLORS.get(family, "#000000")
