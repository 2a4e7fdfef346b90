"""Names of the statistics of heads in both languages; `lens/roles/measures.py` defines the statistics."""

from manyheads.language import Bilingual
from manyheads.lens.roles.role_names import role_names

_NAMES = {
    "importance": Bilingual("importance (gradient)", "重要性（梯度）"),
    "role_score": Bilingual("margin over the threshold of a role", "超出角色阈值的幅度"),
    "aer": Bilingual("alignment error rate (AER)", "对齐错误率（AER）"),
    "strength": Bilingual("share of its layer's output", "在本层输出中的份额"),
    "confidence": Bilingual("largest weight", "最大权重"),
    "entropy": Bilingual("entropy (bits)", "熵（比特）"),
    "spread": Bilingual("entropy relative to uniform weights", "熵（相对于均匀权重）"),
    "distance": Bilingual("mean offset (positions)", "平均偏移（位置数）"),
    "near": Bilingual("weight within two positions", "两个位置以内的权重"),
    "weight-1": Bilingual("weight on the previous token", "前一个词元上的权重"),
    "weight+1": Bilingual("weight on the next token", "后一个词元上的权重"),
    "bos": Bilingual("weight on BOS", "BOS 上的权重"),
    "eos": Bilingual("weight on EOS", "EOS 上的权重"),
    "punctuation": Bilingual("weight on punctuation", "标点上的权重"),
    "rare": Bilingual("largest weight on a rare token", "最大权重落在罕见词元上"),
    "duplicate": Bilingual("weight on the same token elsewhere", "其他相同词元上的权重"),
    "induction": Bilingual("weight on the token after an earlier occurrence", "先前相同词元的后一个词元上的权重"),
}
_MAPS = {"weights": ("weights", "权重"), "norms": ("norms", "范数")}
_TOKENS = {"read": ("token read", "读入的词元"), "written": ("token written", "写出的词元")}


def statistic_names(name: str) -> Bilingual:
    """Return the name of a statistic or measure for people."""
    if name in _NAMES:
        return _NAMES[name]
    if name.startswith("offset"):
        offset = name.removeprefix("offset").replace("-", "−")
        return Bilingual(f"largest weight at offset {offset}", f"最大权重落在偏移 {offset} 处")
    if name.startswith("align "):
        _, kind, token = name.split(" ")
        return Bilingual(
            f"AER ({_MAPS[kind][0]}, {_TOKENS[token][0]})", f"AER（{_MAPS[kind][1]}，{_TOKENS[token][1]}）"
        )
    english, chinese = role_names(name)
    return Bilingual(f"{english}: correct", f"{chinese}：正确率")
