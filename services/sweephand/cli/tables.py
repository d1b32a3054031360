"""Lay out tables and facts: to the width of a terminal, in full and without colour in a pipe."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from sweephand.cli.output import printable, printable_lines

_GAP = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """Describe a column.

    On a terminal that is too narrow the columns with the highest `yields` go first (0 stays); then texts are cut down to
    `least` (None: never).
    """

    title: str
    is_number: bool = False
    least: int | None = None
    yields: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """Be a text with a style of rich's, such as `red`."""

    text: str
    style: str = ""


def new_console() -> Console:
    """Return the console of standard output."""
    return Console(highlight=False, markup=False, emoji=False)


def write_table(columns: Sequence[Column], rows: Sequence[Sequence[str | Cell]], *, nothing: str) -> None:
    """Write a table, or that there is nothing to write; in a pipe that goes to standard error."""
    console = new_console()
    if not rows:
        click.echo(nothing, err=not console.is_terminal)
        return
    cells = [[_cell(value) for value in row] for row in rows]
    natural = [max(cell_len(column.title), *(cell_len(row[index].text) for row in cells)) for index, column in enumerate(columns)]
    widths = _fit(columns, natural, width=console.width) if console.is_terminal else dict(enumerate(natural))
    head = [Cell(column.title, "bold") for column in columns]
    for row in [head, *cells]:
        line = Text(no_wrap=True, end="")
        for index, width in widths.items():
            line.append(_GAP if line else "")
            line.append_text(_padded(row[index], width, is_right=columns[index].is_number))
        line.rstrip()
        if console.is_terminal:
            line.truncate(console.width, overflow="ellipsis")
        console.print(line, soft_wrap=True)


def write_facts(facts: Sequence[tuple[str, str | Cell]]) -> None:
    """Write labels and values in two columns; on a terminal long values go on below themselves."""
    console = new_console()
    indent = max(cell_len(label) for label, _ in facts) + len(_GAP)
    for label, value in facts:
        cell = _cell(value)
        room = console.width - indent if console.is_terminal else 0
        lines = textwrap.wrap(cell.text, max(20, room), break_on_hyphens=False) if room else [cell.text]
        for number, part in enumerate(lines or [""]):
            line = Text((label if number == 0 else "").ljust(indent), style="bold", end="")
            line.append(part, style=f"not bold {cell.style}".strip())
            line.rstrip()
            console.print(line, soft_wrap=True)


def write_heading(text: str) -> None:
    """Write an empty line and a heading."""
    new_console().print(Text(f"\n{text}", style="bold"), soft_wrap=True)


def write_hint(text: str) -> None:
    """Write a line about the answer: not into a pipe, where it would be taken for a part of it."""
    console = new_console()
    if console.is_terminal:
        console.print(Text(printable(text), style="dim"), soft_wrap=True)


def write_line(text: str, *, style: str = "") -> None:
    """Write one line."""
    new_console().print(Text(printable(text), style=style), soft_wrap=True)


def write_block(text: str, *, indent: str = "  ") -> None:
    """Write a text of several lines, such as a traceback, as it is."""
    console = new_console()
    for line in printable_lines(text.rstrip("\n")):
        console.print(Text(f"{indent}{line}".rstrip()), soft_wrap=True)


def _cell(value: str | Cell) -> Cell:
    cell = Cell(value) if isinstance(value, str) else value
    return Cell(printable(cell.text), cell.style)


def _padded(cell: Cell, width: int, *, is_right: bool) -> Text:
    text = Text(cell.text, style=cell.style)
    text.truncate(width, overflow="ellipsis")
    missing = " " * (width - text.cell_len)
    return Text.assemble(missing, text) if is_right else Text.assemble(text, missing)


def _fit(columns: Sequence[Column], natural: Sequence[int], *, width: int) -> dict[int, int]:
    """Return the width of each column that is shown, by its place."""
    least = [
        size if column.least is None else min(size, max(cell_len(column.title), column.least))
        for column, size in zip(columns, natural, strict=True)
    ]
    shown = list(range(len(columns)))
    while _total(least[index] for index in shown) > width:
        yielding = max(shown, key=lambda index: (columns[index].yields, index))
        if columns[yielding].yields == 0:
            break
        shown.remove(yielding)
    widths = {index: least[index] for index in shown}
    spare = width - _total(widths.values())
    for index in sorted(shown, key=lambda index: natural[index] - least[index]):
        wanting = sum(1 for other in shown if natural[other] > widths[other])
        if spare > 0 and natural[index] > widths[index]:
            given = min(natural[index] - widths[index], max(spare // wanting, 1))
            widths[index] += given
            spare -= given
    return widths


def _total(widths: Iterable[int]) -> int:
    sizes = list(widths)
    return sum(sizes) + len(_GAP) * (len(sizes) - 1)
