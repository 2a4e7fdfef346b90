"""Malformed HTTP requests, drawn from a seed: broken JSON, wrong types, hostile bytes, broken framing.

`draw(random, port)` returns an `Attack`: the parts to send, whether to close the sending side, and what may come back.
Everything is bounded: no part is larger than a megabyte and a half.
"""

import json
import random as random_module
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Random = random_module.Random
_PATHS = (
    *("/v1/predict", "/v1/predict", "/v1/predict", "/translate", "/detect", "/v1/completions", "/languages"),
    *("/v1/models", "/v1/models/x", "/v1/bundles", "/v1/bundles/x/reload", "/ready", "/", "/docs", "/openapi.json"),
)
_ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**70, -0.0, 1e308, 1e-308, "", " ", "\0", "\ud800", "𝄞", "a" * 5000),
    *([], {}, [[]], [None], {"": ""}, ["a", 1], [{"a": []}], "NaN", "../../etc/passwd", "%00", "<script>", "null"),
)
_FIELDS = (
    *("texts", "bundle", "n_best", "align", "stream", "decode", "threshold", "glossary", "keep", "prefix", "format"),
    *("abstain", "q", "source", "target", "alternatives", "api_key", "model", "prompt", "max_tokens", "temperature"),
    *("n", "stop", "seed", "unknown"),
)
_DECODE = ("beam", "n_best", "method", "max_new_tokens", "length_penalty", "temperature", "top_k", "top_p", "seed", "x")


@dataclass(frozen=True)
class Attack:
    """What to send on a connection of its own."""

    kind: str
    parts: tuple[bytes, ...]
    half_closes: bool = False  # close the sending side after the last part
    pause: float = 0.0  # seconds between parts
    leaves: bool = False  # close the connection without waiting for a response
    may_be_fine: bool = False  # the request may be valid, so that 200 is right


def request(
    port: int, method: str, path: str, body: bytes, kind: str = "application/json", extra: tuple[str, ...] = ()
) -> bytes:
    """Return a request with a correct length."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: close", *extra]
    if kind:
        lines.append(f"Content-Type: {kind}")
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode("latin-1") + body


def _dump(value: Any) -> bytes:
    return json.dumps(value).encode()


def bad_json(draw: Random, port: int) -> Attack:
    good = _dump({"texts": ["Two cats are sleeping."], "n_best": 2, "decode": {"beam": 4}})
    how = draw.randrange(6)
    if how == 0:
        body = good[: draw.randrange(len(good))]
    elif how == 1:
        place = draw.randrange(len(good))
        body = good[:place] + bytes([draw.randrange(256)]) + good[place + 1 :]
    elif how == 2:
        body = draw.choice(
            (b"", b"{", b"]", b"nul", b"{'texts': 'a'}", b'{"texts": NaN}', b'{"texts": "a",}', b"\xef\xbb\xbf{}")
        )
    elif how == 3:
        body = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 200)))
    elif how == 4:
        body = good + draw.choice((b"}", b"\0", b" {}", b"//"))
    else:
        body = b'{"texts": "a", "texts": ' + draw.choice((b"1", b'"b"', b"[")) + b"}"
    return Attack("bad JSON", (request(port, "POST", draw.choice(_PATHS[:6]), body),), may_be_fine=True)


def wrong_types(draw: Random, port: int) -> Attack:
    path = draw.choice(_PATHS[:6])
    needed = {"/translate": ("q", "source", "target"), "/detect": ("q",), "/v1/completions": ("model", "prompt")}
    body: Any = dict.fromkeys(needed.get(path, ("texts",)), "en")
    if path == "/v1/predict":
        body["texts"] = "Two cats."
    for name in draw.sample(_FIELDS, draw.randrange(1, 4)):
        body[name] = draw.choice(_ODD_VALUES)
    if draw.random() < 0.3:
        body["decode"] = {draw.choice(_DECODE): draw.choice(_ODD_VALUES)}
    if draw.random() < 0.1:
        body = draw.choice(_ODD_VALUES)
    body = _cheap(body)
    return Attack("wrong types", (request(port, "POST", path, _dump(body)),), may_be_fine=True)


def _cheap(body: Any) -> Any:
    """A valid request must not occupy a worker for long: this is not a test of speed."""
    if isinstance(body, dict):
        for name in ("max_tokens", "n"):
            if isinstance(body.get(name), int) and body[name] > 8:
                body[name] = draw_small(body[name])
    return body


def draw_small(value: int) -> int:
    """Return a number that is out of range if the given one is huge, and small otherwise."""
    return value if value >= 2**31 else 8


def nul_bytes(draw: Random, port: int) -> Attack:
    text = draw.choice(("\0", "a\0b", "\0" * 100, "a" + "\0" * draw.randrange(1, 50)))
    if draw.random() < 0.5:
        return Attack("NUL bytes", (request(port, "POST", "/v1/predict", _dump({"texts": text})),), may_be_fine=True)
    path = f"/v1/bundles{draw.choice(('%00', chr(0), '/%00/reload'))}"
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nA: \0b\r\n\r\n"
    return Attack("NUL bytes", (head.encode(),), half_closes=True, may_be_fine=True)


def deep_nesting(draw: Random, port: int) -> Attack:
    depth = draw.choice((50, 500, 1000, 5000, 50_000, 200_000))
    opening, closing = draw.choice(((b"[", b"]"), (b'{"a":', b"}")))
    body = opening * depth + b"1" + closing * draw.choice((depth, 0))
    if draw.random() < 0.5:
        body = b'{"texts": "a", "decode": ' + body + b"}"
    return Attack("deep nesting", (request(port, "POST", draw.choice(_PATHS[:6]), body[:1_400_000]),))


def invalid_utf8(draw: Random, port: int) -> Attack:
    bad = draw.choice((b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xc0\xaf", b"\x80"))
    body = b'{"texts": "a' + bad + b'"}'
    kind = draw.choice(("application/json", "application/json; charset=utf-8", "application/json; charset=utf-16"))
    if draw.random() < 0.3:
        return Attack("invalid UTF-8", (request(port, "POST", "/translate", b"q=a" + bad + b"&source=en&target=zh",
                                                "application/x-www-form-urlencoded"),), may_be_fine=True)  # fmt: skip
    if draw.random() < 0.3:
        body = _dump({"texts": ["\ud800", "\udc00a"]})
    return Attack("invalid UTF-8", (request(port, "POST", "/v1/predict", body, kind),), may_be_fine=True)


_CONTENT_TYPES = (
    *("", "text/plain", "multipart/form-data", "multipart/form-data; boundary=", "a/b" * 500, "json"),
    *("multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "application/xml"),
)
_BODIES = (
    *(b"", b"a", _dump({"texts": "a"}), b"--x\r\n\r\n\r\n--x--", b"--x\r\nContent-Disposition: form-data"),
    *(b"q=a&q=b", b"%%%&&&===", b"q=%ff"),
)


def wrong_kind(draw: Random, port: int) -> Attack:
    content = request(port, "POST", draw.choice(_PATHS[:6]), draw.choice(_BODIES), draw.choice(_CONTENT_TYPES))
    return Attack("wrong content type", (content,), may_be_fine=True)


def wrong_method(draw: Random, port: int) -> Attack:
    method = draw.choice(("GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW", "get", "POST"))
    path = draw.choice((*_PATHS, "/nothing", "/../etc/passwd", "/static/../../x", "/static/%2e%2e/x", "//", "/lens/x"))
    if method == "POST" and "reload" in path:
        path = "/v1/bundles/x/reload"
    return Attack("wrong method or path", (request(port, method, path, b""),), may_be_fine=True)


def huge_body(draw: Random, port: int) -> Attack:
    how = draw.randrange(4)
    head = _predict_head(port)
    if how == 0:  # announced only
        size = draw.choice((2_000_000, 10**9, 10**12, 2**63, 10**30))
        return Attack("huge body", (f"{head}Content-Length: {size}\r\n\r\n".encode(), b'{"texts": "a'), pause=0.01)
    if how == 1:
        return Attack("huge body", (request(port, "POST", "/v1/predict", _dump({"texts": "a " * 600_000})),))
    if how == 2:
        texts = ["a"] * draw.choice((1001, 5000, 50_000))
        return Attack("huge body", (request(port, "POST", "/v1/predict", _dump({"texts": texts})),))
    chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
    return Attack("huge body", (f"{head}Transfer-Encoding: chunked\r\n\r\n".encode(), *[chunk] * 18, b"0\r\n\r\n"))


_LENGTHS = ("-1", "abc", "1e3", "0x10", "", "1,2", "+5", " ", "9" * 25)
_CHUNKS = (
    *(b"zz\r\n", b"-1\r\n{}\r\n", b"5\r\n{}", b"2\r\n{}\r\n", b"ffffffffffffffff\r\na", b"2\n{}\n0\n\n"),
    b"2;" + b"a" * 5000 + b"\r\n{}\r\n0\r\n\r\n",
)
_HEADS = (  # {} is the Host header
    *("GET\r\n", "GET / HTTP/9.9\r\n", "GET / HTTP/1.1\r\n", "GET /ready HTTP/1.0\r\n{}", "\r\n\r\n"),
    *("GET  /  HTTP/1.1\r\n{}", "GET / HTTP/1.1\r\n{}No colon\r\n", "GET / HTTP/1.1\r\n{}: empty\r\n"),
    *("PRI * HTTP/2.0\r\n\r\nSM\r\n", "GET / HTTP/1.1\r\nHost: evil.example\r\n", "GET / HTTP/1.1\r\nHost:\r\n"),
    *("GET / HTTP/1.1\r\n{}{}", "GET http://[::1 HTTP/1.1\r\n{}", "GET /?" + "%" * 500 + " HTTP/1.1\r\n{}"),
    "GET / HTTP/1.1\r\n{}A: " + "a" * 70_000 + "\r\n",
    "GET / HTTP/1.1\r\n{}" + "".join(f"A{number}: b\r\n" for number in range(500)),
    "GET /" + "a" * 70_000 + " HTTP/1.1\r\n{}",
    "GET /ready HTTP/1.1\r\n{}Upgrade: websocket\r\nConnection: Upgrade\r\n",
    "GET / HTTP/1.1\r\n{}Authorization: Bearer " + "é" * 50 + "\r\nX-API-Key: \x7f\r\n",
    *("GET / HTTP/1.1\r\n{}Origin: http://[x\r\n", "GET / HTTP/1.1\r\n{}Origin: null\r\n"),
    "OPTIONS /v1/predict HTTP/1.1\r\n{}Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n",
)


def _predict_head(port: int) -> str:
    return f"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"


def wrong_length(draw: Random, port: int) -> Attack:
    body = _dump({"texts": "Two cats."})
    head = _predict_head(port)
    head += f"Content-Length: {draw.choice((str(len(body) + 5), str(len(body) - 5), *_LENGTHS))}\r\n"
    if draw.random() < 0.2:
        head += f"Content-Length: {len(body)}\r\n"
    if draw.random() < 0.2:
        head += "Transfer-Encoding: chunked\r\n"
    return Attack("wrong Content-Length", (head.encode() + b"\r\n" + body,), half_closes=True, may_be_fine=True)


def bad_chunks(draw: Random, port: int) -> Attack:
    head = f"{_predict_head(port)}Transfer-Encoding: chunked\r\n\r\n"
    return Attack("bad chunks", (head.encode() + draw.choice(_CHUNKS),), half_closes=True, may_be_fine=True)


def bad_head(draw: Random, port: int) -> Attack:
    head = draw.choice(_HEADS).replace("{}", f"Host: 127.0.0.1:{port}\r\n") + "\r\n"
    return Attack("bad head", (head.encode("latin-1"),), half_closes=True, may_be_fine=True)


def garbage(draw: Random, port: int) -> Attack:
    start = draw.choice((b"", b"\x16\x03\x01\x02\x00\x01\x00", b"SSH-2.0-x\r\n", b"\x00\x00\x00\x0c"))
    return Attack("garbage", (start + draw.randbytes(draw.randrange(1, 3000)),), half_closes=True, may_be_fine=True)


def half_closed(draw: Random, port: int) -> Attack:
    whole = request(port, "POST", "/v1/predict", _dump({"texts": "Two cats."}))
    part = whole[: draw.randrange(1, len(whole))]
    return Attack("half closed", (part,), half_closes=True, may_be_fine=True)


def gone(draw: Random, port: int) -> Attack:
    whole = request(port, "POST", "/v1/predict", _dump({"texts": "Two cats."}))
    part = whole if draw.random() < 0.5 else whole[: draw.randrange(1, len(whole))]
    return Attack("client gone", (part,), leaves=True)


def pipelined(draw: Random, port: int) -> Attack:
    good = f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    content = good * draw.randrange(2, 20) + b"BREW"
    return Attack("pipelined", (content,), half_closes=True, may_be_fine=True)


def many_values(draw: Random, port: int) -> Attack:
    """A body of a megabyte with as many values as fit, in the form that is slowest to read or to refuse."""
    value = draw.choice((b"1", b"[]", b"{}", b'""', b"null", b"1e5", b'"\\\\"', b'{"a":[]}'))
    values = b",".join([value] * (draw.choice((6000, 100_000, 960_000)) // (len(value) + 1)))
    name = draw.choice((b"texts", b"q", b"prompt", b"keep", b"decode"))
    body = b'{"%s": [%s], "source": "en", "target": "zh", "model": "t"}' % (name, values)
    if draw.random() < 0.3:
        body = b"{%s}" % b",".join(b'"%d": %s' % (number, value) for number in range(draw.choice((6000, 50_000))))
    if draw.random() < 0.2:
        form = b"&".join([b"a=b"] * draw.choice((1001, 240_000)))
        return Attack("many values", (request(port, "POST", "/translate", form, _FORM),))
    content = request(port, "POST", draw.choice(_PATHS[:6]), body[:999_000])
    return Attack("many values", (content,), may_be_fine=name == b"q" and value == b'"\\\\"')  # to /detect


_FORM = "application/x-www-form-urlencoded"
_CHARSETS = (
    *("undefined", "punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf-7", "utf-16", "utf-32", "hex"),
    *("base64", "rot13", "zlib", "cp037", "mbcs", "nonsense", "", "x" * 500, "utf-8\x00", '"', "utf-8; charset=utf-7"),
)


def odd_charset(draw: Random, port: int) -> Attack:
    charset, path = draw.choice(_CHARSETS), draw.choice(("/translate", "/detect", "/v1/predict", "/v1/completions"))
    field = draw.choice((b"\\ud800", b"+2AA-", b"\\N{NULL}", b"\xff\xfe\x00\xd8", b"\\x", b"xn--\xff", b"a"))
    if draw.random() < 0.7:
        head = b'--b\r\nContent-Disposition: form-data; name="q"\r\nContent-Type: text/plain; charset=%s\r\n\r\n'
        body = head % charset.encode("latin-1") + field + b"\r\n--b--\r\n"
        kind = "multipart/form-data; boundary=b"
    else:
        body, kind = b"q=" + field + b"&source=en&target=zh", draw.choice((_FORM, "application/json"))
    content = request(port, "POST", path, body, f"{kind}; charset={charset}")
    return Attack("odd charset", (content,), may_be_fine=True)


def deep_options(draw: Random, port: int) -> Attack:
    """Settings nested as deeply as Python's parser still reads, and its writer perhaps no longer writes."""
    depth = draw.choice((90, 190, 201, *range(900, 1001)))
    opening, closing = draw.choice(((b"[", b"]"), (b'{"a":', b"}")))
    name = draw.choice((b"stop", b"beam", b"x"))
    nested = opening * depth + b"1" + closing * depth
    body = b'{"texts": "a", "decode": {"%s": %s}}' % (name, nested)
    if draw.random() < 0.3:
        body = b'{"texts": "a", "%s": %s}' % (draw.choice((b"glossary", b"keep", b"stream", b"format")), nested)
    return Attack("deep options", (request(port, "POST", "/v1/predict", body),))


KINDS: tuple[tuple[int, Callable[[Random, int], Attack]], ...] = (  # with how often each is drawn
    (18, bad_json), (24, wrong_types), (5, nul_bytes), (2, deep_nesting), (8, invalid_utf8), (8, wrong_kind),
    (6, wrong_method), (1, huge_body), (6, wrong_length), (4, bad_chunks), (6, bad_head), (4, garbage),
    (4, half_closed), (3, gone), (1, pipelined), (2, many_values), (4, odd_charset), (3, deep_options),
)  # fmt: skip


def draw_attack(draw: Random, port: int) -> Attack:
    """Draw an attack."""
    weights = [weight for weight, _ in KINDS]
    (make,) = draw.choices([make for _, make in KINDS], weights)
    return make(draw, port)


def status_of(received: bytes) -> int | None:
    """Return the status of a response; None if there is none, -1 if it is not HTTP."""
    if not received:
        return None
    if not received.startswith(b"HTTP/1.") or not received[9:12].isdigit():
        return -1
    return int(received[9:12])


def fault_of(attack: Attack, received: bytes) -> str | None:
    """Return what is wrong with the answer to an attack; None if nothing.

    504 is right for a valid request whose text is too long for this machine.
    """
    status = status_of(received)
    if status is None:
        return None  # closing a connection without an answer is allowed: nothing was asked that HTTP can answer
    if status == -1:
        return "the answer is not HTTP"
    if status >= 500 and status not in (501, 505) and not (status == 504 and attack.may_be_fine):
        return f"status {status}"
    if status == 200 and not attack.may_be_fine:
        return "status 200"
    body = received.partition(b"\r\n\r\n")[2]
    if b"Traceback" in body or b'File "' in body:
        return "a traceback"
    return None
