"""What `quickstart` shows of a model it has trained: answers that one can judge by reading them."""

from collections.abc import Sequence
from itertools import islice

from rich.console import Console

from manyheads import corpora
from manyheads.bundle import Bundle
from manyheads.corpora.story_parser import first_sentence
from manyheads.text.suggestions import shortened

# One word, and what is made of it.
OPINIONS: dict[str, tuple[str, ...]] = {
    "en": (
        "This hotel is expensive.",
        "This hotel is not expensive.",
        "I do not think that this hotel is expensive.",
        "Is this hotel expensive?",
        "This hotel is expensive, but it is comfortable.",
    ),
    "zh": (
        "这家酒店很贵。",
        "这家酒店不贵。",
        "我不觉得这家酒店很贵。",
        "这家酒店贵吗？",
        "这家酒店很贵，但是它很舒适。",
    ),
    "de": (
        "Dieses Hotel ist teuer.",
        "Dieses Hotel ist nicht teuer.",
        "Ich denke nicht, dass dieses Hotel teuer ist.",
        "Ist dieses Hotel teuer?",
        "Dieses Hotel ist teuer, aber es ist bequem.",
    ),
}
# A table is a thing, or a place.
SENTENCES: dict[str, tuple[str, ...]] = {
    "en": (
        "Two days ago Anna's sister bought a red scarf at the market.",
        "The cup is on the table.",
        "Where did the man buy the table?",
        "Please give the old teacher a cup of tea.",
    ),
    "zh": (
        "两天前安娜的妹妹在市场上买了一条红色的围巾。",
        "那个杯子在桌子上。",
        "那个男人是在哪里买那张桌子的？",
        "请给我那杯茶。",
    ),
    "de": (
        "Vor zwei Tagen hat Annas Schwester auf dem Markt einen roten Schal gekauft.",
        "Die Tasse steht auf dem Tisch.",
        "Wo hat der Mann den Tisch gekauft?",
        "Bitte gib dem alten Lehrer eine Tasse Tee.",
    ),
}
PROMPTS = {
    "en": "Last Sunday Anna lost her key in the park.",
    "zh": "上个星期天安娜在公园里弄丢了她的钥匙。",
    "de": "Letzten Sonntag hat Anna ihren Schlüssel im Park verloren.",
}
_STORIES, _SHOWN = 100, 3


def show_opinions(bundle: Bundle, language: str, console: Console) -> None:
    """The same word praised, denied, doubted, asked after."""
    console.print("\nOne word, five sentences · 同一个词，五句话", style="bold")
    for text, found in zip(OPINIONS[language], bundle.predictions(OPINIONS[language]), strict=True):
        console.print(f"  {found.line()}  {text}", markup=False)


def show_entities(bundle: Bundle, language: str, console: Console) -> None:
    """Sentences with their entities marked."""
    console.print("\nWho, what, where, when · 谁、什么、哪里、何时", style="bold")
    for found in bundle.predictions(SENTENCES[language]):
        console.print(f"  {found.line()}", markup=False)


def show_stories(bundle: Bundle, language: str, console: Console) -> None:
    """Stories from first sentences it has never seen, and how many of them make sense."""
    rows = islice(corpora.rows("generate", language, "test", _STORIES, 2), _STORIES)
    beginnings = [first_sentence(text) for (text,) in rows]
    stories = [found.line() for found in bundle.predictions(beginnings)]
    console.print("\nStories from first sentences it has never seen · 由未见过的首句续写的故事", style="bold")
    for beginning, story in list(zip(beginnings, stories, strict=True))[:_SHOWN]:
        console.print(f"  {beginning}", style="bold", markup=False, end="")
        console.print(shortened(story[len(beginning) :], 400), markup=False)
    if language != "de":
        _show_consistency(stories, console)


def _show_consistency(stories: Sequence[str], console: Console) -> None:
    faults = [corpora.consistent(story) for story in stories]
    good = sum(not found for found in faults)
    console.print(
        f"  {good} of {len(stories)} such stories are consistent: people, pronouns, things, places and times agree · "
        f"{len(stories)} 个续写的故事中有 {good} 个前后一致"
    )
    for story, found in list(zip(stories, faults, strict=True)):
        if found:
            console.print(f"  one that is not · 不一致的一例: {shortened(story, 400)}", markup=False)
            console.print(f"    ({shortened(found[0])})", markup=False)
            return
