import json
import re
import shutil
from pathlib import Path

import pytest

from e2e.report.page import write_page
from e2e.report.run import Run

CASES = Path(__file__).parent / "cases"
NAMES = ("leader_frozen", "leader_killed", "postgres_read_only", "rolling_update")


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CASES, tmp_path / "e2e" / "cases"))


def _change(cases: Path, name: str, changes: dict[str, object]) -> None:
    document = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    (cases / f"{name}.json").write_text(json.dumps(document | changes), encoding="utf-8")


def test_the_page_lists_every_case_and_shows_its_picture(cases: Path, tmp_path: Path) -> None:
    page = write_page(cases, tmp_path / "page")

    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert headings == [
        "How to read the pictures", "All cases", "Leader frozen", "Leader killed", "PostgreSQL read only", "Rolling update",
    ]  # fmt: skip
    for name in NAMES:
        assert f'<img src="{name}.svg"' in text
        assert (page.parent / f"{name}.svg").exists()
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#(.+?)\)", text)) <= anchors
    assert "All 4 cases passed." in text


def test_the_table_has_the_figures_of_each_case(cases: Path, tmp_path: Path) -> None:
    text = write_page(cases, tmp_path / "page").read_text(encoding="utf-8")

    heads = next(line for line in text.splitlines() if line.startswith("| Case |"))
    killed = next(line for line in text.splitlines() if line.startswith("| [Leader killed]"))
    figures = dict(zip(heads.split("|"), killed.split("|"), strict=True))
    assert figures[" Take-over "] == " 15.4 s "
    assert figures[" Missed ticks "] == " 2 "


def test_the_page_says_what_to_look_for(cases: Path, tmp_path: Path) -> None:
    text = write_page(cases, tmp_path / "page").read_text(encoding="utf-8")

    killed = text[text.index("## Leader killed") : text.index("## PostgreSQL")]
    assert "The lead goes from b2zjq to 5rlbt." in killed
    assert "2 ticks did not, since nobody led: a run on start at 20 s made up for them all." in killed
    assert "4.6 s: SIGKILL to the leader, shop-sweephand-dispatcher-75cc69bb55-b2zjq" in killed
    rolled = text[text.index("## Rolling update") :]
    assert "planned ticks ran at their time, none was missed." in rolled


def test_a_failed_case_is_counted_and_stands_out(cases: Path, tmp_path: Path) -> None:
    _change(cases, "leader_killed", {"outcome": "failed"})

    text = write_page(cases, tmp_path / "page").read_text(encoding="utf-8")

    assert "1 of 4 cases failed." in text
    assert "**failed**" in text


def test_the_same_cases_make_the_same_page(cases: Path, tmp_path: Path) -> None:
    first, second = (write_page(cases, tmp_path / name).parent for name in ("one", "two"))

    written = [{path.name: path.read_bytes() for path in directory.iterdir()} for directory in (first, second)]
    assert written[0] == written[1]


def test_a_picture_of_a_case_that_is_no_more_goes(cases: Path, tmp_path: Path) -> None:
    directory = write_page(cases, tmp_path / "page").parent
    (cases / "leader_killed.json").unlink()

    write_page(cases, directory)

    assert not (directory / "leader_killed.svg").exists()
    assert (directory / "rolling_update.svg").exists()


def test_thirty_cases_fit_on_the_page(cases: Path, tmp_path: Path) -> None:
    for number in range(30):
        _change(cases, "leader_killed", {"name": f"case_{number}"})
        (cases / "leader_killed.json").rename(cases / f"case_{number}.json")

    text = write_page(cases, tmp_path / "page").read_text(encoding="utf-8")

    assert len(re.findall(r"^\| \[Case \d+\]\(#case-\d+\)", text, flags=re.MULTILINE)) == 30


def test_a_title_does_not_break_the_table(cases: Path, tmp_path: Path) -> None:
    _change(cases, "leader_killed", {"title": "A | B: <b>`SIGKILL`</b> & *more*"})

    text = write_page(cases, tmp_path / "page").read_text(encoding="utf-8")

    assert r"A \| B: \<b\>\`SIGKILL\`\</b\> & \*more\*" in text


def test_a_case_with_nothing_to_draw_is_listed_without_a_picture(cases: Path, tmp_path: Path) -> None:
    _change(cases, "leader_killed", {"ticks": [], "leaders": []})

    page = write_page(cases, tmp_path / "page")

    assert "## Leader killed" in page.read_text(encoding="utf-8")
    assert "leader_killed.svg" not in page.read_text(encoding="utf-8")
    assert not (page.parent / "leader_killed.svg").exists()


def test_a_run_without_cases_has_a_page(tmp_path: Path) -> None:
    page = write_page(tmp_path / "cases", tmp_path / "page")

    assert "No case was run." in page.read_text(encoding="utf-8")


def test_the_page_names_the_run(cases: Path, tmp_path: Path) -> None:
    run = Run("2026-11-30T16:00:00Z", "0.1.0", "0123456789", "cluster", "v1.36.1", "kindest/node:v1.36.1")
    run.write(cases.parent)

    text = write_page(cases, tmp_path / "page").read_text(encoding="utf-8")

    assert "| Date | 2026-11-30 16:00:00 UTC |" in text
    assert "| sweephand | 0.1.0 (0123456789) |" in text
    assert "| Kubernetes | v1.36.1 |" in text


def test_without_a_word_of_the_run_its_date_is_that_of_its_first_case(cases: Path, tmp_path: Path) -> None:
    text = write_page(cases, tmp_path / "page").read_text(encoding="utf-8")

    assert "| Date | 2026-11-30 19:56:11 UTC |" in text
    assert "Kubernetes |" not in text


def test_a_run_here_knows_its_version() -> None:
    run = Run.beginning_now(place="processes")

    assert re.fullmatch(r"\d+\.\d+\.\d+.*", run.version)
    assert run.kubernetes == ""
