"""Additional nouns and adjectives for opinions; the columns are those of `nouns` and `adjectives`.

They are separate tables, so that the translation corpus does not change.
"""

from functools import cache

from manyheads.corpora import lexicon
from manyheads.corpora.adjectives import adjective_table
from manyheads.corpora.lexemes import Adjective, Noun
from manyheads.corpora.nouns import noun_table

VENUES = noun_table("""
hotel            | 酒店 家     | das Hotel, Hotels                       | it  | inn comfortable pretty priced
restaurant       | 餐厅 家     | das Restaurant, Restaurants             | it  | inn priced
museum           | 博物馆 座   | das Museum, Museen                      | it  | shown pretty
park             | 公园 个     | der Park, Parks                         | it  | outside pretty
beach/beaches    | 海滩 个     | der Strand, Strände                     | it  | outside pretty
city             | 城市 座     | die Stadt, Städte                       | it  | outside pretty priced
concert          | 音乐会 场   | das Konzert, Konzerte                   | it  | tale
play             | 话剧 部     | das Theaterstück, Theaterstücke         | it  | tale longish
game             | 游戏 个     | das Spiel, Spiele                       | it  | tale asked
lesson           | 课 节       | die Stunde, Stunden                     | it  | tale asked
""")

ADJECTIVES = adjective_table("""
bad            | bad worse                   | 糟糕的 糟糕      | schlecht schlechter   | tale inn               | -
exciting       | exciting more_exciting      | 精彩的 精彩      | spannend spannender   | tale                   | +
disappointing  | disappointing ~             | 令人失望的 令人失望 | enttäuschend ~     | tale inn               | -
ugly           | ugly uglier                 | 难看的 难看      | hässlich hässlicher   | pretty clothing        | -
fashionable    | fashionable ~               | 时髦的 时髦      | modisch modischer     | clothing               | +
rude           | rude ruder                  | 粗鲁的 粗鲁      | grob grober           | person                 | -
selfish        | selfish ~                   | 自私的 自私      | egoistisch ~          | person                 | -
careless       | careless ~                  | 粗心的 粗心      | nachlässig ~          | person                 | -
reliable       | reliable more_reliable      | 可靠的 可靠      | zuverlässig ~         | worker phone computer camera car bicycle | +
slow           | slow slower                 | 慢 慢            | langsam langsamer     | phone computer waiter  | -
fast           | fast faster                 | 快 快            | schnell schneller     | computer car bicycle   | +
useful         | useful more_useful          | 有用的 有用      | nützlich nützlicher   | phone computer camera map umbrella | +
loud           | loud louder                 | 吵闹的 吵        | laut lauter           | room inn city radio    | -
quiet          | quiet quieter               | 安静的 安静      | ruhig ruhiger         | room inn outside       | +
modern         | modern ~                    | 现代的 现代      | modern moderner       | inn room museum city   | +
dusty          | dirty ~                     | 脏的 脏          | schmutzig ~           | inn room outside       | -
tidy           | clean ~                     | 干净的 干净      | sauber ~              | inn outside            | +
hard           | hard harder                 | 很硬的 硬        | hart härter           | bread bed sofa chair biscuit | -
disgusting     | disgusting ~                | 难吃的 难吃      | eklig ~               | baked soup sausage cheese | -
boring-place   | boring ~                    | 无聊的 无聊      | langweilig ~          | museum city            | -
""")

# Adjectives that are not clearly positive or negative.
_AMBIGUOUS = frozenset({"small", "new", "old-thing", "fat", "rich", "poor", "strong", "shy", "serious", "strict"})
_EVALUATIVE = tuple(
    adjective
    for adjective in (*lexicon.ADJECTIVE_BY_KEY.values(), *ADJECTIVES)
    if adjective.value in "+-" and adjective.key not in _AMBIGUOUS
)
_PLAIN = tuple(
    lexicon.ADJECTIVE_BY_KEY[key] for key in ("long", "short", "thick", "big", "red", "blue", "green", "black", "tall")
)
# Sets of adjectives that are too close in meaning to occur in one sentence, negated or not.
_RELATED_QUALITIES = (
    {"good", "bad", "interesting", "boring", "exciting", "disappointing", "funny"},
    {"boring-place", "modern", "disappointing"},
    {"bad", "disappointing"},
    {"beautiful", "ugly", "cute", "fashionable"},
    {"friendly", "rude", "polite", "selfish"},
    {"diligent", "lazy", "careless", "reliable", "experienced"},
    {"clever", "experienced", "famous"},
    {"honest", "selfish"},
    {"slow", "fast", "diligent", "lazy"},
    {"loud", "quiet"},
    {"clean", "dirty", "dusty", "tidy"},
    {"cheap", "expensive"},
    {"sweet", "sour", "ripe"},
    {"delicious", "disgusting", "fresh"},
    {"simple", "difficult"},
    {"light", "heavy"},
)


@cache
def judgments(noun: Noun) -> tuple[Adjective, ...]:
    """Return the positive and negative adjectives that fit a noun."""
    return tuple(adjective for adjective in _EVALUATIVE if adjective.tags & noun.tags)


@cache
def plain_qualities(noun: Noun) -> tuple[Adjective, ...]:
    """Return the neutral adjectives that fit a noun."""
    return tuple(adjective for adjective in _PLAIN if adjective.tags & noun.tags)


@cache
def are_related(first: Adjective, second: Adjective) -> bool:
    """Return whether two adjectives are too close in meaning to be contrasted or combined."""
    return first is second or any({first.key, second.key} <= qualities for qualities in _RELATED_QUALITIES)


def _has_both(noun: Noun) -> bool:
    values = {adjective.value for adjective in judgments(noun)}
    return values == {"+", "-"}


_DULL = frozenset({"lemon", "question", "ticket", "cup", "plate", "bowl", "box", "towel", "flower", "gift"})
THINGS = tuple(
    noun
    for noun in (*lexicon.NOUN_BY_KEY.values(), *VENUES)
    if noun.sex == "it" and _has_both(noun) and "animal" not in noun.tags and noun.key not in _DULL
)
PEOPLE = tuple(noun for noun in lexicon.NOUN_BY_KEY.values() if noun.sex in ("he", "she") and "kin" not in noun.tags)
PERSON = lexicon.NOUN_BY_KEY["woman"]  # its adjectives fit every named person
