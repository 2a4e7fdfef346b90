"""`manyheads serve`: bundles over HTTP."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.messages import _

if TYPE_CHECKING:
    from manyheads.serve.service.service import Service
    from manyheads.serve.service.settings import ServeSettings

_PATH = click.Path(path_type=Path)


@click.command(
    short_help=_("Serve bundles over HTTP, with a playground."),
    help=_(
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
        """
    ),
)
@click.argument("bundles", metavar="[NAME=]BUNDLE...", nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help=_("Address to listen on."))
@click.option("--port", type=click.IntRange(0, 65_535), default=8876, show_default=True, help=_("Port."))
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    help=_("Number of worker processes. [default: one per core]"),
)
@click.option(
    "--keys",
    type=_PATH,
    help=_("File of API keys, one on each line. [default: the variable MANYHEADS_API_KEYS, or none]"),
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    help=_("Requests per minute and key; one with much text counts as several. [default: unlimited]"),
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help=_("Time limit of a request, in seconds."),
)
@click.option(
    "--read-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help=_("Time in which a request must arrive, in seconds."),
)
@click.option(
    "--max-text",
    type=click.IntRange(1),
    default=20_000,
    show_default=True,
    help=_("Characters of one text."),
)
@click.option(
    "--queue",
    type=click.IntRange(1),
    default=2000,
    show_default=True,
    help=_("Texts that may wait; more are refused."),
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    help=_("Also answer for this host name; may be repeated."),
)
@click.option(
    "--cors",
    "cors_origins",
    multiple=True,
    metavar="ORIGIN",
    help=_("Let pages of this site use the API; may be repeated."),
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help=_("Take the client's address from X-Forwarded-For if this reverse proxy sends it; may be repeated."),
)
@click.option(
    "--share-examples",
    is_flag=True,
    help=_("Let visitors see texts of the validation data, and the snapshots of training, on the lens pages."),
)
@click.option(
    "--check",
    is_flag=True,
    help=_("Load the bundles, answer one text with each, and exit."),
)
@click.option("--log", is_flag=True, help=_("Log every request as JSON."))
def serve(bundles: tuple[str, ...], check: bool, log: bool, **options: Any) -> None:
    """Serve bundles."""
    try:
        from manyheads.serve.service.access import Access, read_keys
        from manyheads.serve.service.service import Service
        from manyheads.serve.service.settings import ServeSettings
    except ModuleNotFoundError as error:
        raise click.UsageError(
            _(
                "The package {package} is not installed. Install what the server needs: pip install 'manyheads[serve]'",
                package=error.name,
            )
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
            raise click.UsageError(_("{bundle} names no folder. Write NAME=FOLDER.", bundle=bundle))
        path = Path(folder).absolute()
        if not path.is_symlink():  # a link stays: each reload follows it anew
            path = path.resolve()
        name = name or (path.parent.name if path.name == "bundle" else path.name)
        if name in folders:
            raise click.UsageError(
                _(
                    "Two bundles are called {name}. Give names: first={first} second={second}",
                    name=name,
                    first=folders[name],
                    second=folder,
                )
            )
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
        line = _(
            "{name}: {task}, {n_parameters:,} parameters, version {version}",
            name=bundle.name,
            task=bundle.task,
            n_parameters=bundle.n_parameters,
            version=bundle.version,
        )
        click.echo(line)
    click.echo(_("All bundles were loaded and answered a text."))


def _run(folders: dict[str, str], settings: "ServeSettings", access: Any, log: bool) -> None:
    import logging

    from manyheads.serve.local_server import address_of, is_loopback, listen_at
    from manyheads.serve.service.http_server import run_service

    listener = listen_at(settings.host, settings.port)  # a port in use is reported before bundles are loaded
    if not is_loopback(settings.host) and not access.needs_key:
        click.echo(
            _(
                "Warning: everybody who can reach {host} may use this server. Give API keys with --keys.",
                host=settings.host,
            ),
            err=True,
        )
    access_log = logging.getLogger("manyheads.access")
    access_log.propagate = False  # the logger "manyheads" shows everything from INFO on
    access_log.setLevel(logging.INFO if log else logging.WARNING)
    if log:
        access_log.addHandler(logging.StreamHandler(sys.stderr))
    address = address_of(listener)
    click.echo(_("Loading {names} …", names=", ".join(folders)))

    def started() -> None:
        click.echo(_("Playground and API: {address}  (Ctrl-C to stop)", address=address))

    run_service(folders, settings, access, listener, started)
