"""Names of scores, test sets, rows and cleaning reasons in English and Chinese."""

from manyheads.language import Bilingual

_CHINESE = {
    "held-out test": "测试集",
    "unseen combinations": "未见过的组合",
    "validation": "验证集",
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
    "held out to validate": "留作验证",
}
_SETS = {"test": "held-out test", "compositional": "unseen combinations", "valid": "validation"}


def display_name(name: str) -> Bilingual:
    """Return a name in both languages; an unlisted name is returned unchanged."""
    english = _SETS.get(name, name)
    return Bilingual(english, _CHINESE.get(english, english))
