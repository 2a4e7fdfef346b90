"""What names of the log are called on the page, in English and in Chinese."""

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
    "held out to validate": ("held out to validate", "留作验证"),
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
}


def named(name: str) -> tuple[str, str]:
    """A name in two languages; one we do not know is shown as it is."""
    plain = name.replace("_", " ")
    return _NAMES.get(plain, (plain, plain))
