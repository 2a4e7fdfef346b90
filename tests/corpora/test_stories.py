"""Stories: those of the corpus have no faults, corrupted ones have."""

from functools import cache
from random import Random

import jaxtyping
import pytest

from manyheads.corpora import rows, story_faults
from manyheads.corpora.stories import Story, StorySampler
from manyheads.corpora.story_parser import parse_sentence
from manyheads.corpora.story_sentences import FRAMES, NAMES, WHEN, line_text


@pytest.fixture(autouse=True)
def _without_type_checks():
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@cache
def stories(count: int, seed: int) -> tuple[Story, ...]:
    sampler = StorySampler(seed)
    return tuple(sampler.story() for _ in range(count))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("split", ["train", "compositional"])
def test_stories_of_the_corpus_have_no_faults(language, split):
    for (story,) in rows("generate", language, split, 800, seed=2):
        assert story_faults(story) == [], story


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_line_is_parsed_back(language):
    kinds = set()
    for story in stories(1500, 3):
        for line in story.lines:
            again = parse_sentence(line_text(line, language), language)
            assert again is not None and line_text(again, language) == line_text(line, language)
            assert again == line or line.form == "it"
            kinds.add(line.kind)
    assert kinds >= set(FRAMES) - {"slept", "was-tired"}


def test_stories_have_three_to_eight_sentences_and_a_summary_of_the_same_people():
    for story in stories(1500, 3):
        assert 3 <= len(story.lines) <= 8
        names = {name for name in NAMES if name in story.text("en")}
        assert {name for name in NAMES if name in line_text(story.summary, "en")} <= names


def test_words_of_held_out_events_occur_in_training():
    known = {word for (text,) in rows("generate", "en", "train", 2000, seed=2) for word in text.split()}
    for split in ("valid", "test", "compositional"):
        for (text,) in rows("generate", "en", split, 200, seed=2):
            assert set(text.split()) <= known


def exchanged(story: Story, rng: Random) -> str:
    """Replace one later mention of a name by another name."""
    positions = [position for position, line in enumerate(story.lines) if position and line.who in NAMES]
    if not positions:
        return ""
    lines = list(story.lines)
    position = rng.choice(positions)
    present = {line.who for line in lines} | {line.whom for line in lines}
    stranger = rng.choice([name for name in NAMES if name not in present])
    lines[position] = lines[position]._replace(who=stranger)
    return Story(tuple(lines), story.summary).text("en")


def reversed_pronouns(story: Story) -> str:
    lines = [line._replace(who={"he": "she", "she": "he"}.get(line.who, line.who)) for line in story.lines]
    return "" if tuple(lines) == story.lines else Story(tuple(lines), story.summary).text("en")


def shuffled(story: Story, rng: Random) -> str:
    lines = list(story.lines)
    while tuple(lines) == story.lines:
        rng.shuffle(lines)
    return Story(tuple(lines), story.summary).text("zh")


def other_time(story: Story) -> str:
    lines = list(story.lines)
    time = next(time for time in WHEN if time != lines[0].time)
    lines[-1] = lines[-1]._replace(time=time, link="")
    return Story(tuple(lines), story.summary).text("en")


def repeated(story: Story) -> str:
    return Story((*story.lines, story.lines[-1]), story.summary).text("zh")


def test_corrupted_stories_have_faults():
    rng = Random(1)
    corruptions = {
        "a stranger": lambda story: exchanged(story, rng),
        "he for she": reversed_pronouns,
        "another order": lambda story: shuffled(story, rng),
        "another time": other_time,
        "a sentence twice": repeated,
        "cut in a sentence": lambda story: story.text("en")[:-4],
        "two joined": lambda story: story.text("zh") + story.text("zh"),
    }
    caught = {}
    for name, corrupt in corruptions.items():
        corrupted = [text for story in stories(300, 7) if (text := corrupt(story))]
        caught[name] = sum(bool(story_faults(text)) for text in corrupted) / len(corrupted)
    # Some changes are harmless: lines may be swapped, another person may help, the guest may bake the cake.
    minimum = {"another order": 0.95, "a stranger": 0.9, "he for she": 0.85}
    assert all(share >= minimum.get(name, 1.0) for name, share in caught.items()), caught


@pytest.mark.parametrize(
    ("story", "fault"),
    [
        ("Yesterday Anna lost her key in the park. He was sad. She found the key.", "“he” has no referent"),
        ("Yesterday Anna lost her key in the park. She was happy. She found it.", "no reason to be happy"),
        ("Yesterday Anna lost her key in the park. She found it at the zoo. She was happy.", "Anna is not there: zoo"),
        ("Yesterday Anna lost her key in the park. She found the hat. She was happy.", "not mentioned before: hat"),
        ("Anna was hungry yesterday. She bought a cake. She drank the cake.", "does not apply to: cake"),
        ("Anna was hungry yesterday. She bought a cake. Peter ate the cake.", "Peter appears without introduction"),
        ("Yesterday it was raining. Anna went to the park. She saw a dog.", "raining"),
        ("Yesterday Anna bought a red hat at the market. She gave the blue hat to Leo. He was happy.", "was not blue"),
        ("Yesterday Anna bought a hat at the market. She thanked Leo. He was happy.", "appears without introduction"),
        (
            "Yesterday Anna lent Leo a novel. He read it. The novel was boring. He liked it.",
            "contradictory opinions of: novel",
        ),
        ("Yesterday Anna lent Leo a novel. He read it. The novel was not were.", "cannot be parsed: The novel was not"),
        ("Yesterday Anna lent Leo an novel. He read it. He liked it.", "cannot be parsed: Yesterday Anna lent Leo an"),
        ("昨天安娜在公园里弄丢了她的钥匙。她找到了那本钥匙。她很高兴。", "cannot be parsed: 她找到了那本钥匙。"),
        ("昨天安娜在公园里弄丢了她的钥匙。彼得找到了它。她把它给了彼得。", "Anna does not have it: key"),
        ("Anna went to the park.", "the story has 1 sentences"),
        ("", "the story has 0 sentences"),
    ],
)
def test_faults_are_described(story, fault):
    assert any(fault in found for found in story_faults(story)), story_faults(story)
