"""Names of scores, test sets, rows, cleaning reasons and losses in English and Chinese."""

from collections.abc import Mapping

from manyheads.messages import Message

_CHINESE = {
    "held-out test": "测试集",
    "unseen combinations": "未见过的组合",
    "validation": "验证集",
    "cross-validation": "交叉验证",
    # Scores
    "accuracy": "准确率",
    "accuracy where answered": "作答部分的准确率",
    "accuracy of masked tokens": "掩码词元准确率",
    "macro-F1": "宏平均 F1",
    "micro-F1": "微平均 F1",
    "exact match": "完全匹配率",
    "exact sentences": "整句正确率",
    "precision": "精确率",
    "recall": "召回率",
    "intent accuracy": "意图准确率",
    "calibration error": "校准误差",
    "out-of-scope AUROC": "范围外文本识别 AUROC",
    "false alarms": "误报率",
    "calibration error of intents": "意图校准误差",
    "nats per character": "每字符奈特",
    "bits per byte": "每字节比特",
    "perplexity per word": "词困惑度",
    "perplexity per token": "词元困惑度",
    "perplexity of masked tokens": "掩码词元困惑度",
    "BLEU (tokenized, lowercased)": "BLEU（已分词、小写）",
    # Rows of a training set
    "sentence pairs": "句对",
    "labeled texts": "条带标签文本",
    "tagged texts": "条已标注文本",
    "texts": "条文本",
    "sentences": "个句子",
    "documents": "篇文档",
    # Reasons why a row is dropped
    "empty": "空行",
    "too long": "过长",
    "length ratio": "长度比异常",
    "bad encoding": "编码错误",
    "duplicate": "重复",
    "in valid or test": "与验证集或测试集重复",
    "in test": "与测试集重复",
    "held out for validation": "留作验证",
    # Terms of the loss
    "label smoothing": "标签平滑",
    "intent loss": "意图损失",
}
_LOSS_UNITS = {  # by `Task.loss_unit`
    "tok": Message("token"),
    "texts": Message("text"),
    "words": Message("word"),
    "masked": Message("masked token"),
}
_SETS = {"test": "held-out test", "compositional": "unseen combinations", "valid": "validation"}


def display_name(name: str) -> Message:
    """Return a name in both languages; an unlisted name is returned unchanged."""
    english = _SETS.get(name, name)
    return Message(english, _CHINESE.get(english, english))


def loss_unit_name(unit: str) -> Message:
    """Return what the loss is averaged over, in the singular."""
    return _LOSS_UNITS.get(unit, Message(unit, unit))


def loss_name(unit: str, terms: Mapping[str, float]) -> Message:
    """Return what a loss measures: "nats per token, with label smoothing 0.1"; `terms` are in it beside the entropy."""
    name = loss_unit_name(unit)
    listed = [(display_name(term), f"{weight:g}") for term, weight in terms.items()]
    english = " and ".join(f"{term.en} {weight}" for term, weight in listed)
    chinese = "、".join(f"{term.zh} {weight}" for term, weight in listed)
    return Message(
        f"nats per {name.en}" + (f", with {english}" if listed else ""),
        f"每个{name.zh}的奈特数" + (f"，含{chinese}" if listed else ""),
    )


def rows_name(noun: str, n_kept: int, dropped: Mapping[str, int]) -> Message:
    """Return how many rows are used, and how many are kept out and why, the most frequent reason first."""
    reasons = sorted(
        ((count, display_name(reason)) for reason, count in dropped.items() if count), key=lambda one: -one[0]
    )
    name, n_out = display_name(noun), sum(dropped.values())
    if not n_out:
        return Message(f"{n_kept:,} {name.en}", f"{n_kept:,} {name.zh}")
    english = ", ".join(f"{count:,} {reason.en}" for count, reason in reasons)
    chinese = "，".join(f"{reason.zh} {count:,}" for count, reason in reasons)
    total = n_kept + n_out
    return Message(
        f"{n_kept:,} of {total:,} {name.en} · {n_out:,} kept out: {english}",
        f"{n_kept:,} / {total:,} {name.zh} · 排除 {n_out:,}：{chinese}",
    )
