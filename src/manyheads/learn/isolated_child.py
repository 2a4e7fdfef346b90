"""The child process that runs a learner's file: started by its path, it imports nothing of manyheads.

It reads one JSON object from standard input, locks itself in, and writes one JSON object per call to a pipe. It never
sees an expected result: the parent compares. Limits, in the order in which they hold: an audit hook (every platform),
limits on memory, time and file size (Unix), seccomp against sockets and new processes and Landlock against files
(Linux). What a limit refuses is an exception in the learner's code.
"""

import builtins
import contextlib
import ctypes
import io
import json
import os
import platform
import struct
import sys
import sysconfig
import time
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

MAX_DEPTH = 20  # of a result
MAX_NUMBERS = 200_000
EXTRA_MEMORY = 1 << 30  # bytes beyond what the imports take
_OWN_NAME = "manyheads"


class UnsupportedError(Exception):
    """A result that is not made of arrays, numbers, texts, lists and tuples."""


# Values as JSON ------------------------------------------------------------------------------------------------------


def encode(value: Any, depth: int = 0) -> Any:
    """A value as JSON: an array is {"array": dtype, "shape": …, "data": …}, a tuple {"tuple": …}."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth > MAX_DEPTH:
        raise UnsupportedError("it is nested too deeply")
    if isinstance(value, list):
        if len(value) > MAX_NUMBERS:
            raise UnsupportedError("it is too large")
        return [encode(item, depth + 1) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(item, depth + 1) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key, depth + 1), encode(item, depth + 1)] for key, item in value.items()]}
    return _encode_array(value)


def _encode_array(value: Any) -> Any:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    device = "cpu"
    if torch is not None and isinstance(value, torch.Tensor):
        device = str(value.device.type)
        if device != "cpu":
            return {"array": str(value.dtype), "device": device, "shape": list(value.shape), "data": []}
        name = str(value.dtype).removeprefix("torch.")
        value = value.detach().resolve_conj().resolve_neg()
        value = value.float() if name == "bfloat16" else value
        shape, size, flat = list(value.shape), value.numel(), value.reshape(-1)
    elif numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
        shape, size, flat, name = list(value.shape), value.size, value.reshape(-1), str(value.dtype)
    else:
        raise UnsupportedError(type(value).__name__)
    if size > MAX_NUMBERS:
        raise UnsupportedError("it is too large")
    if name == "object" or name.startswith(("complex", "<U", "|S")):
        return {"array": name, "device": device, "shape": shape, "data": []}
    return {"array": name, "device": device, "shape": shape, "data": flat.tolist()}


def decode(value: Any, arrays: str) -> Any:
    """The value of its JSON, with arrays of numpy or torch; torch gets the floating dtype that it creates itself."""
    if isinstance(value, list):
        return [decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(decode(item, arrays) for item in value["tuple"])
    if "dict" in value:
        return {_hashable(decode(key, arrays)): decode(item, arrays) for key, item in value["dict"]}
    import numpy

    array = numpy.array(value["data"], dtype=value["array"]).reshape(value["shape"])
    if arrays == "numpy":
        return array
    import torch

    tensor = torch.from_numpy(array)
    return tensor.to(torch.get_default_dtype()) if tensor.is_floating_point() else tensor


def _hashable(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


# Calls ---------------------------------------------------------------------------------------------------------------


def line_of(error: BaseException, filename: str) -> int | None:
    """The deepest line of the learner's file that an error passed through."""
    if isinstance(error, SyntaxError) and error.filename == filename:
        return error.lineno
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def describe(error: BaseException, filename: str) -> dict[str, Any]:
    """An error as JSON."""
    text = ""
    with contextlib.suppress(Exception):
        text = " ".join(str(error).split())[:300]
    return {"error": type(error).__name__, "text": text, "line": line_of(error, filename)}


def load(source: str, filename: str, name: str) -> Any:
    """Run a learner's file and return what it defines under a name; None if it does not."""
    module = types.ModuleType("submission")
    module.__dict__["__file__"] = filename
    sys.modules["submission"] = module  # dataclasses look their module up
    exec(compile(source, filename, "exec"), module.__dict__)
    return module.__dict__.get(name)


def call(function: Any, inputs: list[Any], arrays: str, filename: str) -> dict[str, Any]:
    """Call the learner's function on one input: its result, the inputs that it changed, and how long it took."""
    arguments = [decode(value, arrays) for value in inputs]
    before = [json.dumps(encode(argument)) for argument in arguments]
    try:
        started = time.perf_counter()
        value = function(*arguments)
        seconds = time.perf_counter() - started
        if value is not None and not isinstance(value, str | bytes) and _is_lazy(value):
            return {"kind": type(value).__name__}
        result = encode(value)
    except UnsupportedError as reason:
        return {"kind": str(reason)}
    except Exception as error:
        return describe(error, filename)
    changed = [n for n, text in enumerate(before) if json.dumps(encode(arguments[n])) != text]
    return {"result": result, "changed": changed, "seconds": seconds}


def _is_lazy(value: Any) -> bool:
    return isinstance(value, types.GeneratorType | map | zip | filter | range | type) or callable(value)


def run(request: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    """Load a learner's file and call its function on every input, once for each kind of arrays."""
    filename = request["filename"]
    try:
        function = load(request["source"], filename, request["function"])
    except BaseException as error:
        send({"loading": describe(error, filename)})
        return
    if isinstance(function, type) or not callable(function):
        send({"loading": {"kind": "class" if isinstance(function, type) else type(function).__name__}})
        return
    for arrays in request["arrays"]:
        message: dict[str, Any] = {}
        for number, inputs in enumerate(request["calls"]):
            if message.get("error") != "MemoryError":  # filling the memory again would take its time
                message = call(function, inputs, arrays, filename)
            send({"arrays": arrays, "call": number, **message})
    sys.stdout.flush()  # before the parent hears that there is no more
    send({"done": True})


# Limits --------------------------------------------------------------------------------------------------------------

_REFUSED_EVENTS = (
    "ctypes.",
    "ftplib.",
    "http.",
    "imaplib.",
    "os.chmod",
    "os.chown",
    "os.exec",
    "os.fork",
    "os.kill",
    "os.link",
    "os.mkdir",
    "os.posix_spawn",
    "os.putenv",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.spawn",
    "os.startfile",
    "os.symlink",
    "os.system",
    "os.truncate",
    "os.unshare",
    "poplib.",
    "pty.",
    "resource.setrlimit",
    "shutil.",
    "signal.pthread_kill",
    "smtplib.",
    "socket.",
    "subprocess.",
    "tempfile.",
    "urllib.",
    "webbrowser.",
    "winreg.",
)


def readable_roots(forbidden: list[Path]) -> list[Path]:
    """The folders of Python, its packages and the system's libraries, without every folder of manyheads."""
    system = ("/lib", "/lib64", "/usr/lib", "/proc/cpuinfo", "/sys/devices/system/cpu")  # torch counts cores
    roots = {Path(path) for path in (*sys.path, *sysconfig.get_paths().values(), *system)}
    found: list[Path] = []
    waiting = [root.resolve() for root in roots if root.is_absolute() and root.exists()]
    while waiting:
        path = waiting.pop()
        if path.name.startswith(_OWN_NAME) or path in forbidden:
            continue
        holds_own = path.is_dir() and any(one.is_relative_to(path) for one in forbidden)
        if holds_own or (path.is_dir() and (path / _OWN_NAME).exists()) or path.name.startswith("python"):
            waiting += path.iterdir() if path.is_dir() else []
        else:
            found.append(path)
    return found


def add_audit_hook(roots: list[Path]) -> None:
    """Refuse what a solution never needs. A hook cannot be removed again."""
    allowed = tuple(str(root) for root in roots)
    realpath, fsdecode, is_integer = os.path.realpath, os.fsdecode, int
    # Looked up now: the learner's code may replace them.
    starts, instance, error, writing = (
        str.startswith,
        isinstance,
        PermissionError,
        (os.O_WRONLY | os.O_RDWR | os.O_CREAT),
    )
    state = {"inside": False}

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if starts(event, _REFUSED_EVENTS):
            raise error(f"{event} is not allowed in a check")
        if event != "open" or state["inside"] or instance(arguments[0], is_integer):
            return
        path, mode, flags = arguments
        if (instance(mode, str) and set(mode) & set("wax+")) or (instance(flags, int) and flags & writing):
            raise error("a check writes no files")
        state["inside"] = True
        try:
            is_allowed = starts(realpath(fsdecode(path)), allowed)
        finally:
            state["inside"] = False
        if not is_allowed:
            raise error("a check reads no files")

    sys.addaudithook(hook)


def limit_resources(seconds: float) -> None:
    """Limit memory beyond what the imports took, processor time and the size of files."""
    try:
        import resource
    except ImportError:  # Windows
        return
    used = 4 << 30
    with contextlib.suppress(OSError):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    cpu = int(time.process_time() + seconds) + 2
    limits = {
        "RLIMIT_AS": used + EXTRA_MEMORY,
        "RLIMIT_CPU": cpu,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": 64,
    }
    for name, limit in limits.items():
        with contextlib.suppress(OSError, ValueError, AttributeError):
            resource.setrlimit(getattr(resource, name), (limit, limit))


# Numbers of Linux system calls, by machine. EPERM is returned for them.
_SYSCALLS = {
    "x86_64": (
        0xC000003E,
        56,  # clone: only threads
        # socket connect accept sendto recvfrom bind listen socketpair fork vfork execve kill rename mkdir rmdir creat
        # link unlink symlink chmod fchmod chown fchown lchown ptrace mount tkill setrlimit mkdirat fchownat unlinkat
        # renameat linkat symlinkat fchmodat utimensat accept4 process_vm_readv/writev renameat2 execveat userfaultfd
        # bpf prlimit64 truncate setns unshare io_uring_setup pidfd_open fchmodat2 perf_event_open setxattr removexattr
        "41 42 43 44 45 49 50 53 57 58 59 62 82 83 84 85 86 87 88 90 91 92 93 94 101 165 200 160 258 260 263 264 265 "
        "266 268 280 288 310 311 316 322 323 321 302 76 308 272 425 434 452 298 188 197",
    ),
    "aarch64": (
        0xC00000B7,
        220,
        "198 203 202 206 207 200 201 199 221 129 34 37 36 35 38 52 53 54 55 117 40 130 164 88 242 270 271 276 281 282 "
        "280 261 45 268 97 425 434 452 241 5 14",
    ),
}
_CLONE3 = 435  # on every machine
_CLONE_THREAD, _EPERM, _ENOSYS = 0x10000, 1, 38


def add_seccomp_filter(libc: Any) -> None:
    """Refuse sockets, new processes, signals to others and changes of files, in the kernel."""
    if platform.machine() not in _SYSCALLS:
        return
    arch, clone, refused = _SYSCALLS[platform.machine()]
    refuse, allow = 0x00050000 | _EPERM, 0x7FFF0000
    program = [(0x20, 0, 0, 4), (0x15, 1, 0, arch), (0x06, 0, 0, 0x80000000), (0x20, 0, 0, 0)]  # arch, then number
    program += [(0x35, 0, 1, 0x40000000), (0x06, 0, 0, refuse)]  # the x32 numbers
    for number in map(int, refused.split()):
        program += [(0x15, 0, 1, number), (0x06, 0, 0, refuse)]
    program += [(0x15, 0, 1, _CLONE3), (0x06, 0, 0, 0x00050000 | _ENOSYS)]  # libc then calls clone
    program += [(0x15, 0, 3, clone), (0x20, 0, 0, 16), (0x45, 1, 0, _CLONE_THREAD), (0x06, 0, 0, refuse)]
    program += [(0x06, 0, 0, allow)]
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code)
    header = struct.pack("HP", len(program), ctypes.addressof(buffer))
    libc.prctl(22, 2, ctypes.c_char_p(header), 0, 0)


def add_landlock(libc: Any, roots: Iterable[Path]) -> None:
    """Let the process read below these folders and nothing else of the file system, in the kernel."""
    create, add, restrict = 444, 445, 446
    version = libc.syscall(create, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return
    every_right = (1 << (13 if version == 1 else 14 if version == 2 else 15)) - 1
    rules = struct.pack("Q", every_right)
    ruleset = libc.syscall(create, ctypes.c_char_p(rules), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return
    for root in roots:
        with contextlib.suppress(OSError):
            folder = os.open(root, os.O_PATH | os.O_CLOEXEC)
            rights = 0b1100 if root.is_dir() else 0b0100  # read files, list folders
            rule = struct.pack("=Qi", rights, folder)
            libc.syscall(add, ruleset, 1, ctypes.c_char_p(rule), 0)
            os.close(folder)
    libc.syscall(restrict, ruleset, 0)
    os.close(ruleset)


def lock_in(seconds: float, forbidden: list[Path]) -> None:
    """Apply every limit that this platform has."""
    roots = readable_roots(forbidden)
    limit_resources(seconds)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(38, 1, 0, 0, 0)  # no new privileges
        add_landlock(libc, roots)
        add_seccomp_filter(libc)
    add_audit_hook(roots)


def main() -> None:
    """Read the request, import what the file imports, lock in, and run it."""
    channel = int(sys.argv[1])
    request = json.loads(sys.stdin.buffer.read())
    sys.stdin = io.StringIO()
    token, write, dumps = request.pop("token"), os.write, json.dumps

    def send(message: dict[str, Any]) -> None:
        content = (dumps({"token": token, **message}) + "\n").encode()
        while content:
            content = content[write(channel, content) :]

    for name in request["imports"]:
        with contextlib.suppress(ImportError):
            __import__(name)
    lock_in(request["seconds"], [Path(path) for path in request["forbidden"]])
    builtins.input = _no_input
    send({"ready": True})
    run(request, send)
    sys.stdout.flush()
    os._exit(0)


def _no_input(prompt: object = "") -> str:
    raise PermissionError("a check reads no input")


if __name__ == "__main__":
    main()
