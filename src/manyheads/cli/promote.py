"""`manyheads promote`: point a symbolic link at a bundle, in one step, for a server that follows it."""

from pathlib import Path
from uuid import uuid4

import click

from manyheads.messages import _


@click.command(
    short_help=_("Make a bundle the current one: repoint a symbolic link."),
    help=_("""Verify BUNDLE and point the symbolic link LINK at it.

        It is one step: whoever opens LINK finds the old bundle or the new one, never none.

        A server that serves LINK goes on with the bundle it has loaded until it is told to reload.

        \b
        Example:
          manyheads promote runs/week46/bundle current
          manyheads serve tickets=current
          manyheads promote runs/week47/bundle current
          curl -X POST http://127.0.0.1:8000/v1/bundles/tickets/reload
        """),
)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("link", type=click.Path(path_type=Path))
def promote(bundle: Path, link: Path) -> None:
    """Repoint a link."""
    from manyheads.cli.rendering.output import check_folder_of
    from manyheads.errors import BundleError
    from manyheads.storage import verify_manifest

    if link.exists() and not link.is_symlink():
        raise BundleError(_("{link} is not a symbolic link. Choose another name.", link=link))
    check_folder_of(link.parent.resolve() / link.name)
    verify_manifest(bundle, BundleError)
    before = link.readlink() if link.is_symlink() else None
    # Relative, if both are in one folder or below it, so that the folder can be moved.
    target, folder = bundle.resolve(), link.parent.resolve()
    aside = link.with_name(f".{link.name}.{uuid4().hex[:8]}")
    aside.symlink_to(target.relative_to(folder) if target.is_relative_to(folder) else target)
    try:
        aside.replace(link)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    text = _("{link} → {bundle}", link=link, bundle=link.readlink())
    click.echo(text if before is None else _("{text} (before: {before})", text=text, before=before))
