"""Show the story: on a terminal in colour, with bars that move below the text; in a pipe as plain lines."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from sweephand.demo.lines import LogLine

_INDENT = "   "
_ROLE_STYLES = {"api": "cyan", "worker": "green", "dispatcher": "magenta", "migrate": "yellow"}
_COUNTS = r"\b(enqueued|skipped_duplicates)=\d+"
_LEVEL_STYLES = {"warning": "yellow", "error": "red", "critical": "bold red"}


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar below the text."""

    progress: Progress
    task: TaskID

    def move(self, done: int) -> None:
        """Show how many are done."""
        self.progress.update(self.task, completed=done)


@dataclass(frozen=True, slots=True)
class Bars:
    """The bars below the text."""

    progress: Progress

    def add(self, name: str, *, total: int) -> Bar:
        """Add a bar for `total` products."""
        return Bar(self.progress, self.progress.add_task(name, total=total))


class Screen:
    """Standard output. One thread at a time."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._is_live = self._console.is_terminal and not self._console.is_dumb_terminal

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show on a terminal that something takes a while."""
        if not self._is_live:
            yield
            return
        with self._console.status(f"{what} …"):
            yield

    @contextmanager
    def bars(self) -> Iterator[Bars]:
        """Keep bars below the text for the block; in a pipe there are none."""
        progress = Progress(
            TextColumn(f"{_INDENT}{{task.description:<17}}"),
            BarColumn(bar_width=None),
            TextColumn("{task.completed:>2.0f} of {task.total:.0f} published"),
            TimeElapsedColumn(),
            console=self._console,
            expand=True,
            transient=True,
            disable=not self._is_live,
        )
        with progress:
            yield Bars(progress)

    def title(self, text: str) -> None:
        """Say what this is."""
        self._print(Text(), Text(text, style="bold"))

    def chapter(self, title: str, *, why: str = "") -> None:
        """Begin a part of the story."""
        self._console.print()
        self._console.print(Text(title, style="bold"))
        if why:
            self.say(why)

    def say(self, text: str, *, style: str = "") -> None:
        """Tell something."""
        self._print(Text(_INDENT), Text(text, style=style))

    def log(self, line: LogLine) -> None:
        """Show a process's log line. On a terminal, the worker's good news are cut to one row."""
        head = Text.assemble(_INDENT, (f"{line.role} | ", _ROLE_STYLES.get(line.role, "")))
        text = Text(line.text, style=_LEVEL_STYLES.get(line.level, "dim"))
        text.highlight_regex(_COUNTS, style="bold not dim")
        if self._is_live and line.role == "worker" and line.level not in _LEVEL_STYLES:
            text.truncate(self._console.width - head.cell_len, overflow="ellipsis")
        self._print(head, text)

    def table(self, columns: Sequence[str], rows: Sequence[tuple[str, int, int]]) -> None:
        """Show names and numbers under three headings."""
        widths = [max(len(columns[0]), *(len(row[0]) for row in rows)), len(columns[1]), len(columns[2])]
        self._print(Text(_INDENT), Text(_row(columns, widths), style="dim"))
        for row in rows:
            self._print(Text(_INDENT), Text(_row([str(cell) for cell in row], widths)))
        self._console.print()

    def pairs(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Show what is where."""
        width = max(len(name) for name, _ in pairs)
        for name, place in pairs:
            # Never wrapped: a terminal that wraps the line itself copies it as one.
            self._console.print(Text.assemble(_INDENT, (name.ljust(width), "dim"), "  ", place), soft_wrap=True)

    def _print(self, head: Text, text: Text) -> None:
        """Print on a terminal with as much room before the lines that the text wraps into as the head takes."""
        if not self._is_live:
            self._console.print(Text.assemble(head, text), soft_wrap=True)
            return
        for position, line in enumerate(text.wrap(self._console, self._console.width - head.cell_len)):
            line.rstrip()
            self._console.print(Text.assemble(head if position == 0 else " " * head.cell_len, line), soft_wrap=True)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, first, second = cells
    return f"{name:<{widths[0]}}   {first:>{widths[1]}}   {second:>{widths[2]}}"
