"""Write the page of a run."""

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from e2e.report.findings import findings
from e2e.report.records import CaseRecord, read_cases
from e2e.report.run import Run
from e2e.report.timeline import WIDTH, timeline

_INTRODUCTION = """\
# What the end-to-end run saw

Written by `make e2e` (on processes: `make e2e ON=processes`), from what each case did to a shop of its own and what the shop's
database and Prometheus then held. Not edited by hand.
"""
_HOW_TO_READ = """\
## How to read the pictures

Time runs from left to right, in seconds from the beginning of the case; what lies in grey is before or after it. From the top:

- **What was done to the shop**: dashed lines.
- **Who leads**: one row for each dispatcher. It is dark blue while it leads, a grey line while it stands by, and ends where the
  process answers no more. A scrape tells every second or two who leads, and each tick (a white dot) tells it exactly; in the
  light blue between them a dispatcher may lead. A hand-over is a step down to the next row. Over a red ground nobody leads.
- **Planned ticks**: each is as wide as the time until the next one. One row of the ledger may stand for many missed ticks; it is
  then as wide as all of them. A red line beneath a tick says that it ran, but late.
- **Enqueued and skipped**: for each tick, how many stuck rows it enqueued a job for, and how many it left alone since their job
  was still to be done.

A promise is kept if every planned tick is there exactly once, and if each row that was stuck has its job in the end.
"""
_FIGURES = {
    "hand_over_seconds": "Hand-over",
    "take_over_seconds": "Take-over",
    "recovery_seconds": "Recovery",
    "missed": "Missed ticks",
    "duplicates": "Duplicates",
}
_SPECIAL = re.compile(r"([\\`*_|<>\[\]])")


def write_page(cases: Path, directory: Path) -> Path:
    """Write the page of the cases in a directory into another, with a picture for each; returns its file.

    Pictures of earlier runs are removed from there. What the run was of is read from beside the directory of the cases.
    """
    read = read_cases(cases)
    run = Run.read(cases.parent, otherwise=min((case.began_at for case in read), default=None))
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("*.svg"):
        old.unlink()
    pictures = {case.name: picture for case in read if (picture := timeline(case)) is not None}
    for name, picture in pictures.items():
        (directory / f"{name}.svg").write_text(picture, encoding="utf-8")
    parts = [_INTRODUCTION, _run(run), _HOW_TO_READ, _summary(read)]
    page = directory / "README.md"
    page.write_text("\n".join(parts + [_case(case, has_picture=case.name in pictures) for case in read]), encoding="utf-8")
    return page


def _run(run: Run) -> str:
    facts = {
        "Date": run.began_at.replace("T", " ").replace("Z", " UTC"),
        "sweephand": " ".join(filter(None, [run.version, f"({run.revision})" if run.revision else ""])),
        "Ran on": {"cluster": "a kind cluster", "processes": "processes of one machine"}.get(run.place, run.place),
        "Kubernetes": run.kubernetes,
        "Nodes": run.node_image,
    }
    known = {name: value for name, value in facts.items() if value}
    return _table(["Run", ""], [[name, _plain(value)] for name, value in known.items()])


def _summary(cases: Sequence[CaseRecord]) -> str:
    if not cases:
        return "## All cases\n\nNo case was run.\n"
    failed = sum(case.outcome != "passed" for case in cases)
    verdict = f"{failed} of {len(cases)} cases failed." if failed else f"All {len(cases)} cases passed."
    shown = [name for name in _FIGURES if any(name in case.figures for case in cases)]
    has_more = any(_further(case.figures) for case in cases)
    heads = ["Case", "Outcome", "Took", *(_FIGURES[name] for name in shown), *(["Further figures"] if has_more else [])]
    rows = [
        [
            f"[{_plain(case.heading)}](#{_anchor(case.heading)})<br>{_plain(case.title)}",
            case.outcome if case.outcome == "passed" else f"**{_plain(case.outcome)}**",
            f"{case.seconds:.0f} s",
            *(_figure(name, case.figures[name]) if name in case.figures else "" for name in shown),
            *([_further(case.figures)] if has_more else []),
        ]
        for case in cases
    ]
    return f"## All cases\n\n{verdict}\n\n" + _table(heads, rows)


def _case(case: CaseRecord, *, has_picture: bool) -> str:
    figures = [f"{_FIGURES.get(name, _words(name))} {_figure(name, value)}" for name, value in sorted(case.figures.items())]
    lines = [f"## {_plain(case.heading)}", "", _plain(case.title), ""]
    lines += [f"**{_plain(case.outcome)}**" + "".join(f" · {one}" for one in figures), ""]
    if has_picture:
        alternative = f"Timeline of the case: {case.heading}"
        lines += [f'<img src="{quote(case.name)}.svg" width="{WIDTH}" alt="{alternative}">', ""]
    done = [f"- {one.moment:.1f} s: {_plain(one.text)}" for one in sorted(case.happenings, key=lambda one: one.moment)]
    lines += [*chain(["What to look for:", ""], (f"- {_plain(one)}" for one in findings(case)), [""])]
    lines += ["What was done to the shop:", "", *done, ""] if done else []
    return "\n".join(lines)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in (heads, ["---"] * len(heads), *rows))


def _further(figures: Mapping[str, float]) -> str:
    return ", ".join(f"{_words(name)} {_figure(name, value)}" for name, value in sorted(figures.items()) if name not in _FIGURES)


def _words(name: str) -> str:
    return name.removesuffix("_seconds").replace("_", " ")


def _figure(name: str, value: float) -> str:
    if not name.endswith("_seconds"):
        return f"{value:g}"
    return f"{value:.2f} s" if abs(value) < 10 else f"{value:.1f} s"


def _anchor(heading: str) -> str:
    """Return what GitHub calls a heading in an address."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _plain(text: str) -> str:
    """Return a text that Markdown takes as it is."""
    return _SPECIAL.sub(r"\\\1", text)
