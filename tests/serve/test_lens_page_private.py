"""The lens page of a server that does not share the owner's data."""

from pathlib import Path

from playwright.sync_api import expect

from manyheads.serve.lens_page.lens_model import LensModel
from manyheads.serve.lens_page.lens_session import LensSession

from lens.makers import TEXTS
from serve.conftest import Open
from serve.lens_pages import serving
from serve.marked_bundles import make_bundles

WHY = {"en": "This server does not show the data that the model was trained", "zh": "此服务不展示模型的训练数据"}
SNAPSHOTS = {"en": "This server shows the finished model only", "zh": "此服务只展示训练完成的模型"}
MEASURE = {"en": "Measure it", "zh": "开始测量"}
EXAMPLES = {"en": "Texts of your corpus", "zh": "你的语料中的文本"}


def test_pages_say_what_a_server_does_not_show(lens: Open, tmp_path: Path) -> None:
    bundle = make_bundles(tmp_path)["classify"]
    opened = LensModel.open_served(bundle, "reviews", share_examples=False)
    with serving(session=LensSession([opened])) as address:
        for language in ("en", "zh"):
            tab = lens(address=address)
            page = tab.open(TEXTS["classify"], lang=language, page="heads")
            expect(page.get_by_role("alert").filter(has_text=WHY[language])).to_be_visible()
            page = tab.open(TEXTS["classify"], lang=language, page="head")
            expect(page.locator(".role-card").get_by_text(WHY[language])).to_be_visible()
            expect(page.get_by_role("heading", name=EXAMPLES[language])).to_have_count(0)
            page.get_by_role("button", name=MEASURE[language]).click()
            expect(page.locator(".head-effect").get_by_text(WHY[language])).to_be_visible()
            page = tab.open(TEXTS["classify"], lang=language, page="compare", compare="training")
            expect(page.get_by_text(SNAPSHOTS[language])).to_be_visible()
            page = tab.open(lang=language, text="")  # nothing is suggested, and a text can be typed
            expect(page.locator(".examples button")).to_have_count(0)
