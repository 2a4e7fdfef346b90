"""Pictures of heads: right values under the right labels, the same bytes every time, legible everywhere."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import torch
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib.font_manager import FontEntry
from PIL import Image

from manyheads.errors import LensError
from manyheads.lens import Trace, trace
from manyheads.lens.pictures import sheet
from manyheads.lens.pictures.head_pictures import draw_head, draw_overview
from manyheads.lens.pictures.sheet import MISSING, SCALE, Sheet, open_sheet
from manyheads.lens.traces.display_units import UnitName, sides_of
from manyheads.lens.traces.head_maps import head_maps
from manyheads.lens.traces.unit_maps import UnitMap, make_unit_map, shown_units, sides_of_trace

from lens.makers import KINDS, SHORT, TEXTS, task_of

STARTS = {"svg": b"<?xml", "png": b"\x89PNG\r\n", "pdf": b"%PDF"}
CROSS = "decoder.1.cross/2"


def weights_of(recorded: Trace, head: str, unit: UnitName = "tokens") -> UnitMap:
    return make_unit_map(recorded, head, "weights", shown_units(sides_of_trace(recorded), unit))


@pytest.fixture(scope="module")
def traced() -> Trace:
    return trace(task_of("seq2seq"), "the cat sat on the mat.", "the dog ran")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is written on a sheet."""
    texts: list[str] = []
    write = Sheet.text

    def keep(self: Sheet, x: float, y: float, text: str, **style: object) -> object:
        drawn = write(self, x, y, text, **style)
        texts.append(drawn.get_text())
        return drawn

    monkeypatch.setattr(Sheet, "text", keep)
    return texts


@pytest.mark.parametrize("view", ["matrix", "arcs"])
@pytest.mark.parametrize("form", STARTS)
def test_every_format(traced: Trace, form: str, view: str) -> None:
    picture = draw_head(traced, CROSS, format=form, view=view)
    assert picture.startswith(STARTS[form])
    assert picture == draw_head(traced, CROSS, format=form, view=view)
    assert not re.search(rb"20\d\d-\d\d-\d\dT|CreationDate", picture)


@pytest.mark.parametrize("kind", KINDS)
def test_every_task_and_every_kind_of_attention(kind: str) -> None:
    recorded = trace(task_of(kind), TEXTS[kind], search=SHORT)
    for name in recorded.attentions:
        if ".0." in name:
            assert draw_head(recorded, f"{name}/1", format="svg", view="arcs")
            assert draw_head(recorded, f"{name}/1", format="svg", kind="norms", unit="words")
    assert draw_overview(recorded, format="svg")


def test_bytes_do_not_depend_on_the_process_or_its_style() -> None:
    code = (
        "import sys, hashlib, matplotlib as m; sys.path.insert(0, 'tests'); m.rcParams['axes.facecolor'] = 'black'\n"
        "m.rcParams['text.usetex'] = True\n"
        "from lens.makers import task_of; from manyheads.lens import trace\n"
        "from manyheads.lens.pictures.head_pictures import draw_head\n"
        "t = trace(task_of('seq2seq'), 'the cat sat', 'the dog ran')\n"
        "for form in ('svg', 'png', 'pdf'):\n"
        "    print(hashlib.sha256(draw_head(t, 'decoder.1.cross/2', format=form)).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    other = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment, text=True)
    recorded = trace(task_of("seq2seq"), "the cat sat", "the dog ran")
    own = [sha256(draw_head(recorded, CROSS, format=form)).hexdigest() for form in ("svg", "png", "pdf")]
    assert other.stdout.split() == own
    with mpl.rc_context({"axes.facecolor": "red", "lines.linewidth": 9}):
        before = dict(mpl.rcParams)
        styled = draw_head(recorded, CROSS, format="svg")
        assert dict(mpl.rcParams) == before
    assert styled == draw_head(recorded, CROSS, format="svg")


def test_threads_draw_at_once(traced: Trace) -> None:
    heads = [f"decoder.{layer}.cross/{number}" for layer in (0, 1) for number in range(4)]
    alone = [draw_head(traced, head, format="svg") for head in heads]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda head: draw_head(traced, head, format="svg"), heads)) == alone


def test_cells_have_the_colors_of_their_values(traced: Trace) -> None:
    values = traced.weights(CROSS).numpy()
    root = ET.fromstring(draw_head(traced, CROSS, format="svg"))
    fills = re.findall(r"fill: (#[0-9a-f]{6})", ET.tostring(root, encoding="unicode"))
    largest = weights_of(traced, CROSS).largest
    assert largest >= values.max()
    for value in values.flatten():
        color = "#" + "".join(f"{round(255 * part):02x}" for part in SCALE(float(value / largest))[:3])
        assert color in fills


def test_scale_is_one_hue_from_light_to_dark() -> None:
    colors = SCALE(np.linspace(0, 1, 30))
    lightness = colors[:, :3] @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(lightness) < 0).all()
    assert lightness[0] == pytest.approx(1.0)


def test_black_and_white_print_keeps_the_order() -> None:
    recorded = trace(task_of("classify"), "no dog sat; the red mat")
    gray = np.asarray(Image.open(BytesIO(draw_head(recorded, "encoder.0.self/0", format="png"))).convert("L"))
    assert gray.min() < 60
    assert gray.max() == 255


def test_labels_are_words_as_people_read_them(written: list[str]) -> None:
    task = task_of("seq2seq")
    recorded = trace(task, "the 猫 sat", "the dog")
    assert "<0xE7>" in [token.text for token in recorded.model_input.source]
    draw_head(recorded, CROSS, format="svg", role="alignment", language="zh")
    assert "猫" in written
    assert "注意力头 decoder.1.cross/2 · 对齐" in written
    assert not [text for text in written if "▁" in text or "<0x" in text]
    assert any("每行之和为 1" in text for text in written)


def test_english_and_chinese(traced: Trace, written: list[str]) -> None:
    draw_head(traced, CROSS, format="svg", view="arcs", mass=0.8, language="en")
    assert "Head decoder.1.cross/2" in written
    assert any("80 % of its attention" in text for text in written)


def test_a_dollar_sign_and_markup_are_text(written: list[str]) -> None:
    recorded = trace(task_of("classify"), "$x^2$ <b>&\n")
    picture = draw_head(recorded, "encoder.0.self/0", format="svg", unit="characters")
    ET.fromstring(picture)
    assert "$" in written
    assert "<" in written


def test_bytes_of_a_character_are_pooled() -> None:
    recorded = trace(task_of("seq2seq"), "the 猫", "a")
    by_token = recorded.weights("encoder.0.self/0")
    names = [token.text for token in recorded.model_input.source]
    of_cat = [number for number, name in enumerate(names) if name.startswith("<0x")]
    assert len(of_cat) == 3
    unit_map = weights_of(recorded, "encoder.0.self/0")
    column = [unit.text for unit in unit_map.keys].index("猫")
    assert unit_map.values[0, column] == pytest.approx(float(by_token[0, of_cat].sum()), abs=1e-6)
    assert unit_map.values[column].sum() == pytest.approx(1.0, abs=1e-5)
    assert unit_map.values[column, 0] == pytest.approx(float(by_token[of_cat, 0].mean()), abs=1e-6)


@pytest.mark.parametrize("unit", ["tokens", "characters", "words"])
def test_rows_of_units_sum_to_one(traced: Trace, unit: UnitName) -> None:
    for head in ("encoder.0.self/0", "decoder.1.self/1", CROSS):
        values = weights_of(traced, head, unit).values
        assert values.sum(1) == pytest.approx(np.ones(len(values)), abs=1e-5)


def test_sides_of_a_trace_are_those_of_its_tokenizer() -> None:
    task = task_of("seq2seq")
    recorded = trace(task, "the 猫 sat", "the dog")
    assert sides_of_trace(recorded) == sides_of(recorded.model_input, task.tokenizer)


def test_maps_of_the_page_are_drawn_too(traced: Trace) -> None:
    task = task_of("seq2seq")
    maps = head_maps(task.model, traced.model_input)
    sides = sides_of(traced.model_input, task.tokenizer)
    assert draw_head(maps, CROSS, sides, format="png")
    assert draw_overview(maps, sides, format="png")
    with pytest.raises(TypeError, match="give the sides"):
        draw_head(maps, CROSS, format="png")


@pytest.mark.parametrize("mass", [0.3, 0.6, 1.0])
def test_links_hold_the_share_of_the_mass_and_no_more_than_needed(traced: Trace, mass: float) -> None:
    unit_map = weights_of(traced, CROSS)
    links = unit_map.main_links(mass)
    for values, chosen in zip(unit_map.values, links, strict=True):
        assert values[chosen].sum() >= mass - 1e-6
        assert values[chosen].sum() - values[chosen].min() < mass
        assert values[chosen].min() >= values[~chosen].max(initial=0.0)


def test_masked_cells_are_those_after_the_query(traced: Trace) -> None:
    masked = weights_of(traced, "decoder.0.self/0").masked
    assert (masked == np.triu(np.ones(masked.shape), 1).astype(bool)).all()
    assert not weights_of(traced, CROSS).masked.any()


@pytest.mark.parametrize(("view", "note"), [("matrix", "first 160 of"), ("arcs", "first 60 of")])
def test_long_text_is_cut_and_says_so(view: str, note: str, written: list[str]) -> None:
    recorded = trace(task_of("classify", max_length=300), "the cat sat on the mat. " * 30)
    picture = draw_head(recorded, "encoder.0.self/0", format="png", view=view, language="en")
    width, height = Image.open(BytesIO(picture)).size
    assert max(width, height) < 2800
    assert note in " ".join(written)
    assert "sums to 1" not in " ".join(written)


@pytest.fixture
def no_system_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    use_system_fonts(monkeypatch, [])


def use_system_fonts(monkeypatch: pytest.MonkeyPatch, files: list[str]) -> None:
    """Make these the only fonts of the machine."""
    packaged = [one for one in sheet.fontManager.ttflist if one.fname.startswith(mpl.get_data_path())]
    monkeypatch.setattr(sheet.fontManager, "ttflist", packaged)
    monkeypatch.setattr(sheet, "findSystemFonts", lambda: files)
    monkeypatch.setattr(sheet, "_system_fonts", sheet._system_fonts.__wrapped__)


@pytest.mark.usefixtures("no_system_fonts")
def test_latin_greek_and_chinese_need_no_font_of_the_machine(
    traced: Trace, written: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    rows, columns = range(0x81, 0xFF), range(0x40, 0xFF)
    pairs = b"".join(bytes([row, column]) + b"\n" for row in rows for column in columns)
    chinese = "".join(pairs.decode("gbk", "ignore").split() + pairs.decode("big5", "ignore").split())
    assert {*"猫貓龟龜，。「」！"} < {*chinese}
    with open_sheet([f"Größe ß café Ωμέγα ‖α‖ Привет ↓ → … ひらがな{chinese}"]):
        pass
    recorded = trace(task_of("classify"), "the 猫，貓 ß")
    draw_head(recorded, "encoder.0.self/0", format="png", language="zh", unit="characters")
    assert {"猫", "，", "貓", "ß"} < {*written}
    assert MISSING not in "".join(written)
    assert not caplog.records


def test_bytes_do_not_depend_on_the_fonts_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = trace(task_of("classify"), "the 猫 sat")
    own = [draw_head(recorded, "encoder.0.self/0", format=form, language="zh") for form in STARTS]
    serif = str(Path(mpl.get_data_path(), "fonts", "ttf", "DejaVuSerif.ttf"))
    use_system_fonts(monkeypatch, [serif])
    decoys = [FontEntry(fname=serif, name=name) for name in ("DejaVu Sans", "Noto Sans SC", "Arial")]
    monkeypatch.setattr(sheet.fontManager, "ttflist", [*decoys, *sheet.fontManager.ttflist])
    assert [draw_head(recorded, "encoder.0.self/0", format=form, language="zh") for form in STARTS] == own


def test_matplotlib_starts_without_a_word() -> None:
    """Even when it can write no list of fonts, makes the list slowly, or other plots have changed its logger."""
    code = (
        "import sys, threading, types; sys.path.insert(0, 'tests')\n"
        "threading.Timer = lambda _, warn: types.SimpleNamespace(start=warn, cancel=lambda: None)\n"
        "from lens.makers import task_of; from manyheads.lens import trace\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from manyheads import draw_head\n"
        "draw_head(trace(task_of('classify'), 'the 猫'), 'encoder.0.self/0', format='png', language='zh')\n"
        "import logging; assert logging.getLogger('matplotlib').level == logging.NOTSET\n"
        "assert 'zhplot' not in sys.modules"
    )
    environment = {**os.environ, "MPLCONFIGDIR": "/dev/null/nowhere"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_other_characters_are_drawn_in_a_font_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    made = make_font(tmp_path / "korean.ttf", "한")
    use_system_fonts(monkeypatch, [str(tmp_path / "broken.ttf"), made, make_font(tmp_path / "LastResort.ttf", "글")])
    recorded = trace(task_of("classify"), "the 한 猫 글")
    picture = draw_head(recorded, "encoder.0.self/0", format="svg", unit="characters", language="en").decode()
    assert {"한", "猫", MISSING} < {*written}
    assert "Made-Regular" in picture
    (record,) = caplog.records
    assert record.getMessage().startswith("No font has 글: drawn as □. Install a font")


def make_font(path: Path, characters: str) -> str:
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for point in [(0, 500), (500, 500), (500, 0)]:
        pen.lineTo(point)
    pen.closePath()
    builder = FontBuilder(1000, isTTF=True)
    names = {ord(one): f"uni{ord(one):04X}" for one in characters}
    builder.setupGlyphOrder([".notdef", *names.values()])
    builder.setupCharacterMap(names)
    builder.setupGlyf(dict.fromkeys([".notdef", *names.values()], pen.glyph()))
    builder.setupHorizontalMetrics(dict.fromkeys([".notdef", *names.values()], (600, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": "Made", "styleName": "Regular", "psName": "Made-Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)
    return str(path)


@pytest.mark.usefixtures("no_system_fonts")
def test_missing_characters_are_named_in_one_warning(
    monkeypatch: pytest.MonkeyPatch, written: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    recorded = trace(task_of("classify"), "the 한 sat on 글")
    for form in ("svg", "png", "pdf"):
        caplog.clear()
        draw_head(recorded, "encoder.0.self/0", format=form, language="en")
        (record,) = caplog.records
        assert "글 한" in record.getMessage()
        assert "fonts-noto-cjk" in record.getMessage()
    assert MISSING in written
    assert "한" not in written
    caplog.clear()
    monkeypatch.setattr(sheet, "_chinese_font", lambda: None)
    draw_head(trace(task_of("classify"), "the 猫"), "encoder.0.self/0", format="png", language="zh")
    (record,) = caplog.records
    assert "pip install --force-reinstall 'zhplot<2'" in record.getMessage()


def test_bad_arguments_are_refused(traced: Trace) -> None:
    with pytest.raises(LensError, match="no picture format 'jpg'"):
        draw_head(traced, CROSS, format="jpg")  # type: ignore[arg-type]
    with pytest.raises(LensError, match=r"no view 'arc'\. Did you mean arcs"):
        draw_head(traced, CROSS, format="svg", view="arc")  # type: ignore[arg-type]
    with pytest.raises(LensError, match=r"no map of 'norm'\. Did you mean norms"):
        draw_head(traced, CROSS, format="svg", kind="norm")  # type: ignore[arg-type]
    with pytest.raises(LensError, match=r"no unit 'word'\. Did you mean words"):
        draw_head(traced, CROSS, format="svg", unit="word")  # type: ignore[arg-type]
    with pytest.raises(LensError, match="mass = 0 is not a share"):
        draw_head(traced, CROSS, format="svg", mass=0.0)
    with pytest.raises(LensError, match=r"There is no head decoder\.1\.cross/9"):
        draw_head(traced, "decoder.1.cross/9", format="svg")
    with pytest.raises(LensError, match="no heads of kind 'cross'"):
        draw_overview(trace(task_of("classify"), "no"), format="svg", attention="cross")


def test_zero_norms_are_drawn() -> None:
    recorded = trace(task_of("classify"), "no dog")
    silent = replace(recorded["encoder.0.self"], v=torch.zeros_like(recorded["encoder.0.self"].v))
    recorded = replace(recorded, attentions={"encoder.0.self": silent})
    assert draw_head(recorded, "encoder.0.self/0", format="png", kind="norms")


def test_overview_names_every_head_of_one_kind(traced: Trace, written: list[str]) -> None:
    draw_overview(traced, format="svg", roles={"decoder.1.cross/2": "induction"}, language="en")
    assert [text for text in written if re.match(r"\d/\d", text)]
    assert {"0/0", "1/3"} <= set(written)
    assert any(text.startswith("1/2 ind") for text in written)
    assert "All heads of decoder.cross" in written


def test_overview_has_one_square_root_scale(traced: Trace, written: list[str]) -> None:
    picture = draw_overview(traced, format="svg", attention="cross", language="en").decode()
    maps = [weights_of(traced, f"decoder.{layer}.cross/{number}") for layer in (0, 1) for number in range(4)]
    largest = max(one.largest for one in maps)
    for value in np.concatenate([one.values.flatten() for one in maps]):
        color = "#" + "".join(f"{round(255 * part):02x}" for part in SCALE(float(value / largest) ** 0.5)[:3])
        assert color in picture
    assert "Square-root scale." in " ".join(written)


def test_text_that_is_too_wide_is_cut_or_wrapped() -> None:
    with open_sheet([]) as sheet:
        assert sheet.fitted("short", 8, 5) == "short"
        cut = sheet.fitted("a long text " * 20, 8, 2)
        assert cut.endswith("…")
        assert sheet.width(cut, 8) <= 2
        lines = sheet.wrapped("words and words " * 10 + "一二三四五六七八九十" * 5, 8, 2)
        assert "".join(lines).replace(" ", "") == ("wordsandwords" * 10 + "一二三四五六七八九十" * 5)
        assert max(sheet.width(line, 8) for line in lines) <= 2
