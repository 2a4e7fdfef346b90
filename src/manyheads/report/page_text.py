"""What names of the log are called on the page, in English and in Chinese."""

from dataclasses import dataclass

_NAMES = {
    "test": ("held-out test", "测试集"),
    "compositional": ("unseen combinations", "未见过的组合"),
    "valid": ("valid", "验证集"),
    "empty": ("empty", "空行"),
    "too long": ("too long", "过长"),
    "length ratio": ("length ratio", "长度比"),
    "bad encoding": ("bad encoding", "编码错误"),
    "duplicate": ("duplicate", "重复"),
    "in valid or test": ("in valid or test", "与验证集或测试集重复"),
    "held out for validation": ("held out for validation", "留作验证"),
    "n cut off": ("cut off at the maximum length", "到最大长度被截断"),
    "n too long": ("too long for the model", "超出模型长度"),
    "n copies": ("copied from the source", "照抄原文"),
    "n wrong copies": ("of them wrongly", "其中误抄"),
    "n repetitions": ("with repetitions", "有重复片段"),
    "n empty": ("blank", "空译文"),
    "n empty references": ("blank references", "空参考译文"),
    "worst": ("worst", "最差的"),
    "random": ("chosen at random", "随机抽取"),
    "samples": ("samples", "样例"),
    "n sentences": ("sentences", "句数"),
    "n texts": ("texts", "文本数"),
    "n abstained": ("left open", "未作答"),
    "n unknown": ("with a label never seen in training", "标签未在训练中出现"),
    "n spans": ("spans", "片段数"),
    "n predicted": ("predicted spans", "预测片段数"),
    "n tokens": ("tokens", "子词数"),
    "n characters": ("characters", "字符数"),
    "n words": ("words", "词数"),
    "n bytes": ("bytes", "字节数"),
    "n nats": ("nats", "奈特"),
    "sentence pairs": ("pairs", "句对"),
    "texts": ("texts", "条文本"),
    "sentences": ("sentences", "个句子"),
    "documents": ("documents", "篇文档"),
    "accuracy": ("accuracy", "准确率"),
    "accuracy where answered": ("accuracy where answered", "作答部分的准确率"),
    "macro-F1": ("macro-F1", "宏平均 F1"),
    "micro-F1": ("micro-F1", "微平均 F1"),
    "exact match": ("exact match", "完全正确率"),
    "exact sentences": ("exact sentences", "整句正确率"),
    "precision": ("precision", "精确率"),
    "recall": ("recall", "召回率"),
    "intent accuracy": ("intent accuracy", "意图准确率"),
    "calibration error": ("calibration error", "校准误差"),
    "nats per character": ("nats per character", "每字符奈特"),
    "bits per byte": ("bits per byte", "每字节比特"),
    "perplexity per word": ("perplexity per word", "词困惑度"),
    "perplexity per token": ("perplexity per token", "子词困惑度"),
}


@dataclass(frozen=True)
class PageText:
    """What answers are called, each in English and in Chinese."""

    samples: tuple[str, str]  # answers to the same texts over time
    valid: tuple[str, str]  # those texts
    marked: tuple[str, str]
    reference: tuple[str, str]
    answers: tuple[str, str]


_TRANSLATIONS = PageText(
    samples=("Samples over time", "译文的变化"),
    valid=("Valid sentences, by step.", "验证集中的句子，按步数。"),
    marked=("What the reference does not have is <i>marked</i>.", "参考译文中没有的部分<i>另作标记</i>。"),
    reference=("reference", "参考译文"),
    answers=("Translations", "译文"),
)
_ANSWERS = PageText(
    samples=("Samples over time", "答案的变化"),
    valid=("Valid texts, by step.", "验证集中的文本，按步数。"),
    marked=("What the right answer does not have is <i>marked</i>.", "正确答案中没有的部分<i>另作标记</i>。"),
    reference=("expected", "正确答案"),
    answers=("Answers", "答案"),
)


def page_text(kind: object) -> PageText:
    """The words for a task of this kind; older recipes name none, and translate."""
    return _TRANSLATIONS if kind in (None, "seq2seq") else _ANSWERS


def display_name(name: str) -> tuple[str, str]:
    """A name in two languages; one we do not know is shown as it is."""
    plain = name.replace("_", " ")
    return _NAMES.get(plain, (plain, plain))
