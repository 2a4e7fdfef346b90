"""Names and colors of roles, for the terminal, the pictures and the documentation."""

from manyheads.language import pick
from manyheads.lens.roles.role_assignment import ALIGNMENT, UNKNOWN

_CHINESE = {
    ALIGNMENT: "对齐",
    "antecedent": "指代",
    "previous-token": "前一个词元",
    "next-token": "后一个词元",
    "attention-sink": "注意力汇",
    "eos": "句尾",
    "punctuation": "标点",
    "duplicate-token": "重复词元",
    "induction": "归纳",
    "rare-word": "罕见词",
    "positional": "定位",
    UNKNOWN: "未知",
}
_CHINESE_RELATIONS = {
    "subject": "主语",
    "object": "宾语",
    "indirect-object": "间接宾语",
    "modifier": "修饰语",
    "relative": "关系词",
    "nsubj": "主语",
    "obj": "宾语",
    "iobj": "间接宾语",
    "amod": "形容词修饰",
    "advmod": "状语",
    "det": "限定词",
    "case": "介词",
}
_ARROWS = {">": ("→ head", "→中心词"), "<": ("→ dependent", "→从属词")}
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
    return pick(*role_names(role))


def role_names(role: str) -> tuple[str, str]:
    """Return the name of a role in English and in Chinese."""
    if role[-1] in _ARROWS:
        english, chinese = _ARROWS[role[-1]]
        return f"{role[:-1]} {english}", f"{_CHINESE_RELATIONS.get(role[:-1], role[:-1])}{chinese}"
    name, _, offset = role.partition(" ")
    return role, _CHINESE.get(name, name) + offset


def role_color(role: str) -> str:
    """Return the color of a role as a hexadecimal RGB value; related roles share one."""
    family = "relation" if role[-1] in _ARROWS else role.partition(" ")[0]
    return _COLORS.get(family, "#000000")
