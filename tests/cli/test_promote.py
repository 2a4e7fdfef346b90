"""`manyheads promote`: one step from the old bundle to the new one, and none to a damaged one."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from manyheads.cli.promote import promote
from manyheads.errors import BundleError, DataError


@pytest.fixture
def bundles(bundle_folder: Path, tmp_path: Path) -> list[Path]:
    folders = [tmp_path / "runs" / week / "bundle" for week in ("46", "47")]
    for folder in folders:
        shutil.copytree(bundle_folder, folder)
    return folders


def _promote(bundle: Path, link: Path) -> str:
    return CliRunner().invoke(promote, [str(bundle), str(link)], catch_exceptions=False).output


def test_a_link_is_made_and_repointed(bundles: list[Path], tmp_path: Path) -> None:
    link = tmp_path / "current"
    assert _promote(bundles[0], link) == f"{link} → runs/46/bundle\n"
    assert _promote(bundles[1], link) == f"{link} → runs/47/bundle (before: runs/46/bundle)\n"
    assert link.resolve() == bundles[1].resolve()
    assert not list(tmp_path.glob(".current*"))
    (tmp_path / "links").mkdir()
    _promote(bundles[1], tmp_path / "links" / "current")
    assert (tmp_path / "links" / "current").readlink() == bundles[1].resolve()


def test_a_dangling_link_is_repointed(bundles: list[Path], tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to("nowhere")
    assert "(before: nowhere)" in _promote(bundles[0], tmp_path / "current")


def test_what_is_refused_leaves_the_link(bundles: list[Path], tmp_path: Path) -> None:
    link = tmp_path / "current"
    _promote(bundles[0], link)
    (bundles[1] / "bundle.json").write_text("{}")
    with pytest.raises(BundleError, match=r"bundle\.json"):
        _promote(bundles[1], link)
    with pytest.raises(BundleError, match="there is no such folder"):
        _promote(tmp_path / "missing", link)
    with pytest.raises(BundleError, match="is not a symbolic link"):
        _promote(bundles[0], tmp_path / "runs")
    with pytest.raises(DataError, match="does not exist"):
        _promote(bundles[0], tmp_path / "missing" / "current")
    assert link.resolve() == bundles[0].resolve()
