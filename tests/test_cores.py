"""The number of cores: the affinity and the quota of the control group, whichever is smaller."""

import math
import os
from pathlib import Path

import pytest

from manyheads import cores


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cores, "_CGROUPS", tmp_path)
    monkeypatch.setattr(cores, "_MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(cores, "_count_visible", lambda: 64)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    return tmp_path


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")


@pytest.mark.parametrize(
    ("content", "expected"),
    [("100000 100000", 1), ("250000 100000", 3), ("max 100000", 64), ("9900000 100000", 64), ("50000 100000", 1)],
)
def test_quota_of_version_2(groups: Path, content: str, expected: int) -> None:
    write(groups, membership="0::/jobs/one")
    write(groups / "jobs" / "one", cpu__max=content)
    assert cores.count_cores() == expected


def test_smallest_quota_of_the_groups_above_counts(groups: Path) -> None:
    write(groups, membership="0::/jobs/one")
    write(groups / "jobs" / "one", cpu__max="800000 100000")
    write(groups / "jobs", cpu__max="200000 100000")
    assert cores.count_cores() == 2


def test_group_of_a_container_is_the_root_it_sees(groups: Path) -> None:
    write(groups, membership="0::/path/on/the/host", cpu__max="400000 100000")
    assert cores.count_cores() == 4


@pytest.mark.parametrize(("quota", "expected"), [("150000", 2), ("-1", 64)])
def test_quota_of_version_1(groups: Path, quota: str, expected: int) -> None:
    write(groups, membership="9:name=systemd:/\n4:memory:/x\n1:cpu,cpuacct:/jobs")
    write(groups / "cpu,cpuacct" / "jobs", cpu__cfs_quota_us=quota, cpu__cfs_period_us="100000")
    assert cores.count_cores() == expected


def test_without_control_groups_the_affinity_counts(groups: Path) -> None:
    assert cores.cpu_quota() == math.inf
    assert cores.count_cores() == 64
    cores.limit_threads()
    assert "OMP_NUM_THREADS" not in os.environ


def test_quota_limits_the_threads_unless_the_user_has_set_them(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(groups, membership="0::/", cpu__max="100000 100000")
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    cores.limit_threads()
    assert os.environ["OMP_NUM_THREADS"] == "5"
    monkeypatch.delenv("OMP_NUM_THREADS")
    cores.limit_threads()
    assert os.environ["OMP_NUM_THREADS"] == "1"
    monkeypatch.delenv("OMP_NUM_THREADS")  # for the tests after this one


def test_affinity_of_this_process() -> None:
    assert 1 <= cores.count_cores() <= (os.cpu_count() or 1)
