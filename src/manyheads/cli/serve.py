"""`manyheads serve`: bundles over HTTP."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.language import pick

if TYPE_CHECKING:
    from manyheads.serve.service.service import Service
    from manyheads.serve.service.settings import ServeSettings

_PATH = click.Path(path_type=Path)


@click.command(
    short_help=pick("Serve bundles over HTTP, with a playground.", "以 HTTP 提供模型服务，附带试用页面。"),
    help=pick(
        """Serve bundles over HTTP: a playground in the browser at /, an API for every task at /v1/predict, the API of
        LibreTranslate at /translate, and that of OpenAI at /v1/completions. /docs describes all of them.

        The server listens on this machine only, unless --host says otherwise; then give API keys with --keys. Each
        worker is a process with one thread. SIGTERM or Ctrl-C ends the server after the requests under way; SIGHUP
        loads the bundles again.

        \b
        Example:
          manyheads serve runs/quickstart/bundle
          manyheads serve en-zh=runs/mail/bundle reviews=runs/reviews/bundle --port 9000
          manyheads serve runs/quickstart/bundle --check
          curl -d '{"texts": "Two cats are sleeping."}' -H 'Content-Type: application/json' localhost:8876/v1/predict
        """,
        """以 HTTP 提供模型服务：/ 是浏览器中的试用页面，/v1/predict 是各类任务的接口，/translate 兼容 LibreTranslate，
        /v1/completions 兼容 OpenAI。接口说明见 /docs。

        默认只监听本机；用 --host 对外提供服务时，请用 --keys 设置 API 密钥。每个工作进程使用一个线程。收到 SIGTERM
        或 Ctrl-C 后，处理完正在进行的请求再退出；收到 SIGHUP 则重新加载模型包。

        \b
        例：
          manyheads serve runs/quickstart/bundle
          manyheads serve en-zh=runs/mail/bundle reviews=runs/reviews/bundle --port 9000
          manyheads serve runs/quickstart/bundle --check
          curl -d '{"texts": "Two cats are sleeping."}' -H 'Content-Type: application/json' localhost:8876/v1/predict
        """,
    ),
)
@click.argument("bundles", metavar="[NAME=]BUNDLE...", nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help=pick("Address to listen on.", "监听地址。"))
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8876, show_default=True, help=pick("Port.", "监听端口。")
)
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    help=pick("Number of worker processes. [default: one per core]", "工作进程数。[默认：每个核心一个]"),
)
@click.option(
    "--keys",
    type=_PATH,
    help=pick(
        "File of API keys, one on each line. [default: the variable MANYHEADS_API_KEYS, or none]",
        "API 密钥文件，每行一个。[默认：环境变量 MANYHEADS_API_KEYS，没有则不需要密钥]",
    ),
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    help=pick(
        "Requests per minute and key; one with much text counts as several. [default: unlimited]",
        "每个密钥每分钟的请求数；文本多的请求按多个计算。[默认：不限]",
    ),
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help=pick("Time limit of a request, in seconds.", "每个请求的时限（秒）。"),
)
@click.option(
    "--read-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help=pick("Time in which a request must arrive, in seconds.", "接收一个请求的时限（秒）。"),
)
@click.option(
    "--max-text",
    type=click.IntRange(1),
    default=20_000,
    show_default=True,
    help=pick("Characters of one text.", "每段文本的字符数上限。"),
)
@click.option(
    "--queue",
    type=click.IntRange(1),
    default=2000,
    show_default=True,
    help=pick("Texts that may wait; more are refused.", "最多允许多少段文本排队，超出的请求会被拒绝。"),
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    help=pick("Also answer for this host name; may be repeated.", "同时接受以此主机名访问；可重复给出。"),
)
@click.option(
    "--cors",
    "cors_origins",
    multiple=True,
    metavar="ORIGIN",
    help=pick("Let pages of this site use the API; may be repeated.", "允许此网站的页面使用接口；可重复给出。"),
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help=pick(
        "Take the client's address from X-Forwarded-For if this reverse proxy sends it; may be repeated.",
        "请求来自此反向代理时，以其 X-Forwarded-For 中的地址作为客户端地址；可重复给出。",
    ),
)
@click.option(
    "--share-examples",
    is_flag=True,
    help=pick(
        "Let visitors see texts of the validation data, and the snapshots of training, on the lens pages.",
        "允许访问者在透镜页面上看到验证数据中的文本和训练快照。",
    ),
)
@click.option(
    "--check",
    is_flag=True,
    help=pick("Load the bundles, answer one text with each, and exit.", "加载模型包，各回答一段文本，然后退出。"),
)
@click.option("--log", is_flag=True, help=pick("Log every request as JSON.", "以 JSON 记录每个请求。"))
def serve(bundles: tuple[str, ...], check: bool, log: bool, **options: Any) -> None:
    """Serve bundles."""
    try:
        from manyheads.serve.service.access import Access, read_keys
        from manyheads.serve.service.service import Service
        from manyheads.serve.service.settings import ServeSettings
    except ModuleNotFoundError as error:
        raise click.UsageError(
            f"The package {error.name} is not installed. Install what the server needs: pip install 'manyheads[serve]'"
        ) from None

    given = {name: value for name, value in options.items() if value is not None and name not in ("max_text", "queue")}
    settings = ServeSettings(max_text=options["max_text"], queue_texts=options["queue"], **given)
    folders = _named(bundles)
    access = Access(read_keys(settings.keys), settings.rate)
    if check:
        _check(Service(folders, settings))
        return
    _run(folders, settings, access, log)


def _named(bundles: tuple[str, ...]) -> dict[str, str]:
    """Return the folders by name; the name is that of the run or of the folder, unless it is given."""
    folders: dict[str, str] = {}
    for bundle in bundles:
        name, separator, folder = bundle.partition("=")
        if not separator or "/" in name:
            name, folder = "", bundle
        if not folder:
            raise click.UsageError(f"{bundle} names no folder. Write NAME=FOLDER.")
        path = Path(folder).resolve()
        name = name or (path.parent.name if path.name == "bundle" else path.name)
        if name in folders:
            raise click.UsageError(f"Two bundles are called {name}. Give names: first={folders[name]} second={folder}")
        folders[name] = str(path)
    return folders


def _check(service: "Service") -> None:
    """Load the bundles in the workers, which answer one text with each, and print what would be served."""
    import asyncio

    async def run() -> None:
        try:
            await service.start()
        finally:
            await service.close()

    asyncio.run(run())
    for bundle in service.bundles.values():
        click.echo(f"{bundle.name}: {bundle.task}, {bundle.n_parameters:,} parameters, version {bundle.version}")
    click.echo(pick("All bundles were loaded and answered a text.", "所有模型包均已加载，并成功回答了一段文本。"))


def _run(folders: dict[str, str], settings: "ServeSettings", access: Any, log: bool) -> None:
    import logging

    from manyheads.serve.local_server import address_of, is_loopback, listen_at
    from manyheads.serve.service.http_server import run_service

    listener = listen_at(settings.host, settings.port)  # a port in use is reported before bundles are loaded
    if not is_loopback(settings.host) and not access.needs_key:
        click.echo(
            pick(
                f"Warning: everybody who can reach {settings.host} may use this server. Give API keys with --keys.",
                f"警告：能访问 {settings.host} 的任何人都可以使用此服务。请用 --keys 设置 API 密钥。",
            ),
            err=True,
        )
    access_log = logging.getLogger("manyheads.access")
    access_log.propagate = False  # the logger "manyheads" shows everything from INFO on
    access_log.setLevel(logging.INFO if log else logging.WARNING)
    if log:
        access_log.addHandler(logging.StreamHandler(sys.stderr))
    address = address_of(listener)
    click.echo(pick(f"Loading {', '.join(folders)} …", f"正在加载 {'、'.join(folders)} ……"))

    def started() -> None:
        click.echo(
            pick(f"Playground and API: {address}  (Ctrl-C to stop)", f"试用页面和接口：{address}（按 Ctrl-C 停止）")
        )

    run_service(folders, settings, access, listener, started)
