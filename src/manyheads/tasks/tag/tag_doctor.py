"""The tag task's part of `doctor`: types of entities, inconsistent tags, and sentences without entities."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from manyheads.messages import Message, _
from manyheads.tasks.classify.classify_doctor import check_contradictions
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, excerpt, share, verdict_of
from manyheads.tasks.label_checks import check_labels
from manyheads.tasks.tag.settings import TagSettings
from manyheads.tasks.tag.tag_training import iob2_spans
from manyheads.tasks.task_doctor import Sample, Source, TaskDoctor
from manyheads.text.reading.readers import is_table

_TYPE, _INTENT = Message("type"), Message("intent")
_MIN_TAGGED = 3  # a mention that was tagged less often may have been tagged by mistake
_MIN_LETTERS = 3  # of a mention; shorter ones are often words of their own
_LONGEST = 4  # words of a mention that is searched for


@dataclass
class _TagCounts:
    """What one pass over a set counts."""

    types: "Counter[str]" = field(default_factory=Counter)
    intents: "Counter[str]" = field(default_factory=Counter)
    mentions: "dict[str, Counter[str]]" = field(default_factory=dict)  # the kinds of each mention
    n_rows: int = 0
    n_without: int = 0  # rows without an entity

    @classmethod
    def of(cls, source: Source) -> "_TagCounts":
        counts = cls()
        for row in source.rows():
            words = row[0].split(" ")
            spans = list(iob2_spans(row[1].split(" ")))
            counts.n_rows += 1
            counts.n_without += not spans
            counts.intents.update(row[2:])
            for start, end, label in spans:
                counts.types[label] += 1
                counts.mentions.setdefault(" ".join(words[start:end]), Counter())[_kind_of(label)] += 1
        return counts


class TagDoctor(TaskDoctor):
    """Rows are words, their tags in IOB2 and, if set, an intent."""

    noun = Message("sentences")

    def has_line_per_row(self, files: Sequence[str], settings: TagSettings) -> bool:
        """CoNLL columns have one word per line."""
        return len(files) > 1 or is_table(Path(files[0]))

    def check_rows(self, sets: Sequence[Source], settings: TagSettings) -> Iterator[Finding]:
        """Check types and intents, and whether the same words have the same tags."""
        train, *held_out = sets
        counts = {source.name: _TagCounts.of(source) for source in sets}
        own, others = counts[train.name], {source.name: counts[source.name] for source in held_out}
        yield from check_labels(own.types, {name: one.types for name, one in others.items()}, _TYPE, per_row=False)
        if settings.intents:
            intents = {name: one.intents for name, one in others.items()}
            yield from check_labels(own.intents, intents, _INTENT, per_row=True)
            yield check_contradictions(train, 2, _INTENT)
        yield check_types_of_mentions(train, own.mentions)
        yield check_untagged(train, own.mentions)
        yield _check_empty(train, own)

    def check_outputs(self, check: str, samples: Sequence[Sample]) -> Finding:
        """Check that the model finds entities at all."""
        n_expected, n_found = (sum(bool(sample[side].strip()) for sample in samples) for side in (2, 1))
        message = _(
            "{n_found} of {n_samples} sentences got an entity; {n_expected} have one.",
            n_found=n_found,
            n_samples=len(samples),
            n_expected=n_expected,
        )
        if n_found or n_expected < 4:
            return Finding(check, "good", message)
        fix = _("The model tags nothing: train longer, or raise train.learning_rate; run doctor on the recipe.")
        return Finding(check, "bad", message, (), fix)


def _kind_of(label: str) -> str:
    """Return the part of a type that does not depend on the context: "city" of "from.city" and "to.city"."""
    return label.rpartition(".")[2]


def check_types_of_mentions(source: Source, mentions: "dict[str, Counter[str]]") -> Finding:
    """Count mentions whose type is not the one that the same words usually have."""
    total = sum(sum(types.values()) for types in mentions.values())
    minority = {words: sum(types.values()) - max(types.values()) for words, types in mentions.items() if len(types) > 1}
    count = sum(minority.values())
    verdict = verdict_of(count, total, warn=0.1, fail=0.4)
    message = _(
        "{name}: {share} entities have another type than the same words usually have.",
        name=source.name,
        share=share(count, total),
    )
    if verdict == "good":
        return Finding("inconsistent types", verdict, message)
    worst = sorted(minority, key=lambda words: -minority[words])[:MAX_EXAMPLES]
    examples = tuple(
        f"{excerpt(words)}: {', '.join(f'{label} {n:,}' for label, n in mentions[words].most_common(3))}"
        for words in worst
    )
    fix = _("Check the examples: if the words mean the same, tag them alike.")
    return Finding("inconsistent types", verdict, message, examples, fix)


def check_untagged(source: Source, mentions: "dict[str, Counter[str]]") -> Finding:
    """Count places where words that are mostly tagged have no tag."""
    tagged = {words: sum(types.values()) for words, types in mentions.items()}
    known = {words for words, n in tagged.items() if n >= _MIN_TAGGED and sum(map(str.isalpha, words)) >= _MIN_LETTERS}
    missing: Counter[str] = Counter()
    where: dict[str, int] = {}
    for index, row in enumerate(source.rows()):
        for words in _outside(row[0].split(" "), row[1].split(" ")):
            if words in known:
                missing[words] += 1
                where.setdefault(words, index)
    forgotten = {words: n for words, n in missing.items() if 2 * n <= tagged[words]}
    count, total = sum(forgotten.values()), sum(tagged.values())
    verdict = verdict_of(count, total + count, warn=0.03, fail=0.3)
    message = _(
        "{name}: {count:,} times, words that are mostly tagged have no tag ({total:,} entities are tagged).",
        name=source.name,
        count=count,
        total=total,
    )
    if verdict == "good":
        return Finding("missing tags", verdict, message)
    worst = sorted(forgotten, key=lambda words: -forgotten[words])[:MAX_EXAMPLES]
    examples = tuple(
        f"{source.location(where[words])}: {excerpt(words)} "
        + _("(tagged {tagged:,}, not tagged {missing:,})", tagged=tagged[words], missing=missing[words])
        for words in worst
    )
    fix = _("Tag these places too, or remove the sentences.")
    return Finding("missing tags", verdict, message, examples, fix)


def _outside(words: Sequence[str], tags: Sequence[str]) -> Iterator[str]:
    """Yield the sequences of up to four words that have no tag."""
    for start in range(len(words)):
        for end in range(start + 1, min(start + _LONGEST, len(words)) + 1):
            if tags[end - 1] != "O":
                break
            yield " ".join(words[start:end])


def _check_empty(source: Source, counts: _TagCounts) -> Finding:
    verdict = verdict_of(counts.n_without, counts.n_rows, warn=0.8, fail=0.999)
    message = _(
        "{name}: {share} sentences have no entity.", name=source.name, share=share(counts.n_without, counts.n_rows)
    )
    fix = _("Check that the tags are in the right column; if they are, leave out some of these sentences.")
    return Finding("no entities", verdict, message, (), "" if verdict == "good" else fix)
