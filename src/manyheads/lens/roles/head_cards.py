"""`HeadCards`: the role cards of a bundle as a table, in a terminal and in a notebook."""

import io
from collections.abc import Iterator, Sequence
from html import escape
from typing import overload

from rich.console import Console
from rich.table import Table
from rich.text import Text

from manyheads.errors import LensError
from manyheads.lens.heads import Head
from manyheads.lens.pictures.notebook_views import html_table
from manyheads.lens.roles.role_assignment import HeadReport, RoleCard, as_displayed
from manyheads.lens.roles.role_names import role_color, role_name
from manyheads.messages import Message, _

_WIDTH = 100  # of a printed table
_REACHES = {"local": Message("local"), "global": Message("global"), "middle": Message("middle")}


class HeadCards(Sequence[RoleCard]):
    """The role cards of a bundle, in the order of a forward pass; also by name: `cards["decoder.1.cross/2"]`."""

    def __init__(self, report: HeadReport) -> None:
        self.report = report

    def __len__(self) -> int:
        return len(self.report.cards)

    def __iter__(self) -> Iterator[RoleCard]:
        return iter(self.report.cards)

    @overload
    def __getitem__(self, key: int | str) -> RoleCard: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[RoleCard]: ...
    def __getitem__(self, key: int | str | slice) -> RoleCard | Sequence[RoleCard]:
        if not isinstance(key, str):
            return self.report.cards[key]
        name = str(Head.parse(key))
        for card in self.report.cards:
            if card.head == name:
                return card
        raise LensError(
            _("There is no head {name}. This model has {head} and others.", name=name, head=self.report.cards[0].head)
        )

    def with_role(self, name: str) -> list[RoleCard]:
        """Return the cards with this role, such as "alignment", the clearest first."""
        return self.report.with_role(name)

    def __repr__(self) -> str:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for column, heading in enumerate(_headings()):
            table.add_column(heading, justify="left" if column < 2 else "right", no_wrap=True)
        for card in self:
            table.add_row(*map(Text, (card.head, role_name(card.role), *_numbers(card))))
        printed = io.StringIO()
        Console(file=printed, width=_WIDTH, color_system=None).print(table)
        return "\n".join(line.rstrip() for line in printed.getvalue().rstrip().splitlines())

    def _repr_html_(self) -> str:
        """Show the cards in a notebook."""
        rows = []
        for card in self:
            dot = f'<span style="color:{role_color(card.role)}">■</span> '
            rows.append([escape(card.head), dot + escape(role_name(card.role)), *map(escape, _numbers(card))])
        n_texts = self.report.n_texts
        title = _("What each head does ({n_texts} texts)", n_texts=n_texts)
        return html_table(title, _headings(), rows, n_left=2)


def _headings() -> list[str]:
    names = [_("head"), _("role"), _("value"), "95 %"]
    return [*names, _("baseline"), _("random"), _("reach")]


def _numbers(card: RoleCard) -> list[str]:
    """Return the value behind a role, its interval, the best fixed baseline, the best random head, and the reach."""
    reach = str(_REACHES[card.reach])
    if not card.roles:
        return ["", "", "", "", reach]
    prefix, statistic = as_displayed(card.roles[0].statistic, card.statistics[card.roles[0].statistic])
    return [
        f"{prefix}{statistic.value:.2f}",
        f"{statistic.low:.2f}–{statistic.high:.2f}",
        f"{statistic.baseline:.2f}",
        f"{statistic.control:.2f}",
        reach,
    ]
