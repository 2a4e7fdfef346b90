"""`LensSession` itself: what it keeps, how long, for whom, and what it refuses."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from manyheads.bundle import Bundle
from manyheads.errors import DataError, LensError
from manyheads.lens.heads import Head
from manyheads.serve.lens_page import lens_session
from manyheads.serve.lens_page.lens_model import MAX_CHARACTERS, LensModel
from manyheads.serve.lens_page.lens_session import LensSession, TraceRequest
from manyheads.serve.service.problems import ProblemError
from manyheads.text.tokens.seen_words import SeenWords

from lens.makers import SHORT, TEXTS, task_of

SECONDS = 60  # for a measurement, on a very busy machine
HEAD = Head("encoder.0.self", 0)
DELETED = "The folder of this bundle was deleted. The page goes on with the copy in memory."


@cache
def bundle_of(kind: str) -> Bundle:
    return Bundle(task_of(kind), SHORT, {})


def session_of(kind: str = "classify", folder: Path = Path("x"), secret: bytes = b"") -> LensSession:
    return LensSession([LensModel("a", folder, bundle_of(kind))], secret)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The texts that models have read, in order; a text that is in memory is not read again."""
    texts: list[str] = []
    answer_text = lens_session.answer_text

    def recorded(task, text, *rest):  # type: ignore[no-untyped-def]
        texts.append(text)
        return answer_text(task, text, *rest)

    monkeypatch.setattr(lens_session, "answer_text", recorded)
    yield texts


def test_a_text_is_computed_once(computed: list[str]) -> None:
    session = session_of()
    first = session.trace(TraceRequest("a", "the cat"))
    assert session.trace(TraceRequest("a", "the cat")) is first
    assert session.find(first.view["id"]) is first
    assert computed == ["the cat"]


def test_the_texts_used_last_are_kept(computed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lens_session, "_MAX_TEXTS", 2)
    session = session_of()
    for text in ("one", "two", "one", "three"):  # "two" was used longest ago
        session.trace(TraceRequest("a", text))
    assert computed == ["one", "two", "three"]
    session.trace(TraceRequest("a", "one"))
    session.trace(TraceRequest("a", "three"))
    assert computed == ["one", "two", "three"]
    session.trace(TraceRequest("a", "two"))
    assert computed == ["one", "two", "three", "two"]


def test_maps_take_a_bounded_amount_of_memory(computed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["the cat", "the dog sat", "the mat"]
    sizes = [session_of().trace(TraceRequest("a", text)).maps.n_bytes for text in texts]
    monkeypatch.setattr(lens_session, "_MAX_BYTES", sizes[1] + sizes[2])
    session = session_of()
    for text in texts:
        session.trace(TraceRequest("a", text))
    computed.clear()
    for text in texts[1:]:
        session.trace(TraceRequest("a", text))
    assert computed == []
    session.trace(TraceRequest("a", texts[0]))
    assert computed == texts[:1]


def test_the_newest_text_is_kept_however_large(computed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lens_session, "_MAX_BYTES", 1)
    session = session_of()
    traced = session.trace(TraceRequest("a", "the cat"))
    assert session.find(traced.view["id"]) is traced
    assert computed == ["the cat"]


def test_a_text_that_was_dropped_is_computed_again_by_its_id(
    computed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lens_session, "_MAX_TEXTS", 1)
    session = session_of()
    first = session.trace(TraceRequest("a", "one"))
    session.trace(TraceRequest("a", "two"))
    again = session.find(first.view["id"])
    assert again.view == first.view
    assert computed == ["one", "two", "one"]


def test_ids_are_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lens_session, "_MAX_TEXTS", 1)
    monkeypatch.setattr(lens_session, "_MAX_REQUESTS", 2)
    session = session_of()
    ids = [session.trace(TraceRequest("a", text)).view["id"] for text in ("one", "two", "three")]
    with pytest.raises(ProblemError, match="no longer in memory") as raised:
        session.find(ids[0])
    assert raised.value.status == 404
    assert [session.find(id).request.text for id in ids[1:]] == ["two", "three"]


def test_ids_differ_by_everything_that_is_asked() -> None:
    requests = [
        TraceRequest("a", "the cat"),
        TraceRequest("b", "the cat"),
        TraceRequest("a", "the dog"),
        TraceRequest("a", "the cat", "a"),
        TraceRequest("a", "the cat", ""),
        TraceRequest("a", "the cat", step=10),
        TraceRequest("a", "the cat", step=0),
    ]
    assert len({request.id() for request in requests}) == len(requests)
    assert requests[0].id() == TraceRequest("a", "the cat").id()  # saved pages have the same bytes


def test_a_visitor_cannot_ask_for_the_text_of_another() -> None:
    """On a server the ids depend on a secret: knowing what somebody may have typed does not give its id."""
    text = "a text of the first visitor"
    session, other = session_of(secret=b"one"), session_of(secret=b"two")
    id = session.trace(TraceRequest("a", text)).view["id"]
    assert other.trace(TraceRequest("a", text)).view["id"] != id
    guessed = TraceRequest("a", text).id()
    assert guessed != id
    for ask in (
        lambda: session.find(guessed),
        lambda: session.ablate(guessed, []),
        lambda: session.importance(guessed),
        lambda: session.contrast(guessed, 0, "b"),
        lambda: session.walk(guessed, HEAD, 0),
        lambda: session.walk_rows(guessed, "encoder.0.self"),
    ):
        with pytest.raises(ProblemError, match="no longer in memory"):
            ask()


def test_texts_of_visitors_are_not_suggested() -> None:
    session = session_of()
    before = session.describe()
    session.trace(TraceRequest("a", "a text of the first visitor"))
    assert session.describe() == before
    assert before["bundles"][0]["examples"] == []


def test_texts_of_the_command_line_are_suggested_first() -> None:
    opened = LensModel("a", Path("x"), bundle_of("classify"), texts=("mine", "mine", "also mine"))
    assert LensSession([opened]).describe()["bundles"][0]["examples"] == ["mine", "also mine"]


def test_unknown_bundles_and_texts() -> None:
    session = session_of()
    with pytest.raises(ProblemError, match=r"There is no bundle 'b'\. Known: a\.") as raised:
        session.trace(TraceRequest("b", "the cat"))
    assert raised.value.status == 404
    with pytest.raises(ProblemError, match="no longer in memory"):
        session.find("")


@pytest.mark.parametrize(
    ("text", "answer", "error", "message"),
    [
        (" \n\t", None, DataError, r"^The text is empty\. Type a sentence\.$"),
        ("a" * (MAX_CHARACTERS + 1), None, DataError, r"^The text has 20,001 characters; at most 20,000 are shown"),
        ("a", "b" * (MAX_CHARACTERS + 1), DataError, r"^The answer has 20,001 characters; at most 20,000 are shown"),
    ],
)
def test_texts_that_are_refused(
    text: str, answer: str | None, error: type[Exception], message: str, computed: list[str]
) -> None:
    with pytest.raises(error, match=message):
        session_of("seq2seq").trace(TraceRequest("a", text, answer))
    assert computed == []  # before the model reads it


def test_a_text_of_as_many_tokens_as_the_lens_shows() -> None:
    session = session_of()
    n_tokens = len(session.trace(TraceRequest("a", TEXTS["classify"])).model_input.source)
    opened = session.opened("a")
    for most, is_shown in ((n_tokens, True), (n_tokens - 1, False)):
        limited = LensSession([_limited(opened, most)])
        if is_shown:
            assert limited.trace(TraceRequest("a", TEXTS["classify"])).view["text"] == TEXTS["classify"]
        else:
            with pytest.raises(LensError, match=f"has {n_tokens} tokens; the lens shows at most {most}. Shorten it."):
                limited.trace(TraceRequest("a", TEXTS["classify"]))


def _limited(opened: LensModel, n_tokens: int) -> LensModel:
    class Limited(LensModel):
        max_tokens = n_tokens  # type: ignore[assignment]

    return Limited(opened.id, opened.path, opened.bundle)


def test_a_text_that_is_refused_is_not_kept() -> None:
    session = session_of()
    with pytest.raises(LensError):
        session.trace(TraceRequest("a", "the cat", "an answer"))  # a classifier writes none
    with pytest.raises(ProblemError, match="no longer in memory"):
        session.find(TraceRequest("a", "the cat", "an answer").id())


def test_a_deleted_folder_is_noted_and_the_copy_in_memory_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    bundle_of("classify").save(folder)
    session = LensSession([LensModel.open(folder)])
    before = session.trace(TraceRequest("a", "the cat"))
    shutil.rmtree(folder)
    after = session.trace(TraceRequest("a", "the dog"))
    assert DELETED not in [note["en"] for note in before.view["notes"]]
    assert [note["en"] for note in after.view["notes"]].count(DELETED) == 1
    assert after.view["attentions"][0]["n_heads"] == before.view["attentions"][0]["n_heads"]
    assert session.importance(after.view["id"])["heads"]  # also on a copy of the model that is made now


def test_measurements_that_take_too_long_are_ended() -> None:
    session = session_of()
    id = session.trace(TraceRequest("a", "the cat")).view["id"]
    with pytest.raises(LensError, match="takes more than 0 s for this text"):
        session.importance(id, seconds=0.0)


def test_long_measurements_do_not_wait_for_the_model_of_the_page() -> None:
    """They have a model of their own: while every head is measured, the page can be used, and the other way round."""
    session = session_of("seq2seq")
    traced = session.trace(TraceRequest("a", TEXTS["seq2seq"])).view
    position, other = traced["output"]["first"], traced["output"]["tokens"][0]["alternatives"][1]["id"]
    with ThreadPoolExecutor(1) as thread, session.opened("a").lock:
        for measure in (
            lambda: session.importance(traced["id"]),
            lambda: session.contrast(traced["id"], position, other),
        ):
            assert thread.submit(measure).result(timeout=SECONDS)["heads"]


def test_two_bundles_are_traced_by_their_own_models() -> None:
    opened = [LensModel(id, Path(kind), bundle_of(kind)) for id, kind in (("a", "classify"), ("b", "seq2seq"))]
    session = LensSession(opened)
    kinds = [session.trace(TraceRequest(id, "the cat")).view["output"]["task"] for id in "ab"]
    assert kinds == ["classify", "seq2seq"]
    assert [one["name"] for one in session.describe()["bundles"]] == ["classify", "seq2seq"]


def test_a_bundle_on_a_server_has_the_name_it_is_served_by() -> None:
    opened = LensModel("a", Path("/home/owner/client/bundle"), bundle_of("classify"))
    assert opened.name == "client"
    assert replace(opened, served_as="reviews").describe()["name"] == "reviews"


def test_the_page_has_the_remarks_of_predict(untrained: Bundle) -> None:
    knowing = replace(untrained, seen_words=SeenWords.of(["The cat sees the dog."]))
    session = LensSession([LensModel("a", Path("x"), knowing)])
    foreign = session.trace(TraceRequest("a", "猫在睡觉")).view["warnings"]
    assert [warning["en"] for warning in foreign][:2] == [
        "The text is not in English, the language that this model reads.",
        "Not seen in training: 猫, 在, 睡, 觉.",
    ]
    assert foreign[1]["zh"] == "训练中未见过：猫, 在, 睡, 觉。"
    assert session.trace(TraceRequest("a", "The cat", answer="猫")).view["warnings"] == []
    unseen = session.trace(TraceRequest("a", "The cat sees Goethe", answer="猫")).view["warnings"]
    assert [warning["en"] for warning in unseen] == ["Not seen in training: Goethe."]
