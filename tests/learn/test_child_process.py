"""The child process: what a learner's file must not be able to do."""

import sys
from pathlib import Path
from typing import Any

import pytest

from manyheads.learn.child_process import ChildAnswer, run_child
from manyheads.learn.examiner import Verdict, examine, make_paper
from manyheads.learn.exercise import all_exercises
from manyheads.learn.isolated_child import decode
from manyheads.learn.references import attention_references
from manyheads.learn.submission import Submission, make_submission

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="The limits in the kernel are those of Linux")
HEAD = "# manyheads learn: softmax\nimport numpy as np\n"


def submission(body: str) -> Submission:
    return make_submission(Path("softmax.py"), HEAD + body, all_exercises())


def check(body: str) -> Verdict:
    return examine(submission(body))


def run(body: str, seconds: float = 5.0) -> ChildAnswer:
    return run_child(submission(body), [[1]], seconds=seconds)


def result(answer: ChildAnswer) -> Any:
    return decode(answer.calls["numpy"][0]["result"], "numpy")


ATTEMPTS = """
import os, sys
def attempts():
    import socket, subprocess, shutil, ctypes
    yield "fork", lambda: os.fork()
    yield "spawn", lambda: subprocess.run(["true"])
    yield "socket", lambda: socket.create_connection(("127.0.0.1", PORT))
    yield "udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", PORT))
    yield "remove", lambda: os.remove(VICTIM)
    yield "rename", lambda: os.rename(VICTIM, VICTIM + "2")
    yield "write", lambda: open(VICTIM, "w")
    yield "os.open", lambda: os.open(VICTIM, os.O_WRONLY)
    yield "truncate", lambda: os.truncate(VICTIM, 0)
    yield "chmod", lambda: os.chmod(VICTIM, 0)
    yield "rmtree", lambda: shutil.rmtree(os.path.dirname(VICTIM))
    yield "mkdir", lambda: os.mkdir(VICTIM + "d")
    yield "kill", lambda: os.kill(os.getppid(), 0)
    yield "read", lambda: open(REFERENCE).read()
    yield "read a file of the user", lambda: open(VICTIM).read()
    yield "import", lambda: __import__("manyheads.learn.references")
    yield "ctypes", lambda: ctypes.CDLL(None)
    yield "memmap", lambda: np.memmap(REFERENCE, dtype=np.uint8, mode="r")
    yield "limits", lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_AS, (-1, -1))
def softmax(x):
    done = []
    for name, attempt in attempts():
        try:
            attempt()
            done.append(name)
        except (OSError, ImportError):
            pass
    return done
"""


def test_nothing_outside_is_changed_read_or_reached(tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("kept")
    values = {"VICTIM": str(victim), "REFERENCE": attention_references.__file__, "PORT": 9}
    body = "\n".join(f"{name} = {value!r}" for name, value in values.items()) + ATTEMPTS
    assert result(run(body)) == []
    assert victim.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [victim]


def test_the_kernel_refuses_what_goes_past_the_audit_hook() -> None:
    body = (
        "import _posixsubprocess, _socket, os\n"
        "def softmax(x):\n"
        "    done = []\n"
        "    attempts = {'socket': lambda: _socket.socket(2, 1), 'fork': os.fork}\n"
        "    for name, attempt in attempts.items():\n"
        "        try:\n"
        "            attempt()\n"
        "            done.append(name)\n"
        "        except OSError as error:\n"
        "            pass\n"
        "    return done\n"
    )
    assert result(run(body)) == []


def test_an_endless_loop_is_ended() -> None:
    answer = run("def softmax(x):\n    while True: pass\n", seconds=0.5)
    assert answer.ending == "time"


def test_memory_is_limited() -> None:
    verdict = check("def softmax(x):\n    return np.ones(50 * 2**30 // 8)\n")
    assert verdict.outcome == "refused"
    assert verdict.reason.startswith("softmax.py:4: MemoryError: ")


def test_output_is_limited() -> None:
    verdict = check("def softmax(x):\n    while True: print('x' * 10**6)\n")
    assert verdict.reason == "softmax.py:3: the code printed more than 1 MB. Remove the print."


@pytest.mark.parametrize("ending", ["import os; os._exit(0)", "raise SystemExit(0)"])
def test_ending_the_process_is_no_solution(ending: str) -> None:
    verdict = check(f"def softmax(x):\n    {ending}\n")
    assert verdict.outcome == "refused"
    assert "ended before it had answered" in verdict.reason


def test_results_cannot_be_forged() -> None:
    """Messages without the token are ignored, and those with it still need right values."""
    body = (
        "import os, json, sys\n"
        "def softmax(x):\n"
        "    frame = sys._getframe()\n"
        "    token = ''\n"
        "    while frame is not None:\n"
        "        token = frame.f_locals.get('token', token)\n"
        "        frame = frame.f_back\n"
        "    for fd in range(3, 20):\n"
        "        for n in range(30):\n"
        "            for key in ('', token):\n"
        "                line = {'token': key, 'arrays': 'numpy', 'call': n, 'result': [1.0]}\n"
        "                try:\n"
        "                    os.write(fd, (json.dumps(line) + chr(10)).encode())\n"
        "                    os.write(fd, (json.dumps({'token': key, 'done': True}) + chr(10)).encode())\n"
        "                except OSError:\n"
        "                    break\n"
        "    os._exit(0)\n"
    )
    assert check(body).outcome != "solved"


def test_replaced_functions_do_not_reach_the_parent() -> None:
    body = (
        "np.allclose = lambda *a, **k: True\n"
        "np.testing.assert_allclose = lambda *a, **k: None\n"
        "import json\n"
        "json.dumps = lambda *a, **k: '{}'\n"
        "def softmax(x):\n    return x\n"
    )
    assert check(body).outcome != "solved"


def test_a_right_file_in_the_child() -> None:
    body = "def softmax(x):\n    print('here')\n    e = np.exp(x - x.max(1, keepdims=True))\n"
    verdict = check(body + "    return e / e.sum(1, keepdims=True)\n")
    assert verdict.outcome == "solved"
    assert verdict.printed == "here\n" * len(make_paper("softmax").cases)
    assert verdict.seconds < 3


def test_a_file_without_numpy_in_the_child() -> None:
    body = (
        "# manyheads learn: softmax\nimport math, uuid\ndef softmax(x):\n    import ctypes, multiprocessing\n"
        "    rows = [[math.exp(a - max(row)) for a in row] for row in x.tolist()]\n"
        "    return [[a / sum(row) for a in row] for row in rows]\n"
    )
    assert examine(make_submission(Path("softmax.py"), body, all_exercises())).outcome == "solved"


def test_an_error_whose_text_fails_is_still_one_line() -> None:
    verdict = check("class E(Exception):\n    def __str__(self): raise ValueError\ndef softmax(x):\n    raise E\n")
    assert verdict.reason == "softmax.py:6: E: "
