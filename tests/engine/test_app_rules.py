"""What an application may not write is refused where it is written: the file, the rule, the fix."""

import sys
import textwrap
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import SelectBase, column, select, table, text

from sweephand import App, AppError, Job
from sweephand.loading import load_app

products = table("product", column("id"), column("created_at"))
EVERY = timedelta(seconds=60)


def new_app() -> tuple[App, Job[[int]]]:
    app = App("tidy")

    @app.job()
    def mend(product_id: int) -> None:
        pass

    return app, mend


def broken_products() -> SelectBase:
    return select(products.c.id.label("product_id")).order_by(products.c.created_at)


@pytest.mark.parametrize("name", ["", "Tidy", "1st", "a b", "a/b", "x" * 61, "tidy\n", "ä"])
def test_a_name_that_would_not_do_in_a_url_a_metric_or_a_channel_is_refused(name: str) -> None:
    with pytest.raises(AppError, match="a name is lower-case letters"):
        App(name)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "Mend"}, "the kind 'Mend' is not like publish_product"),
        ({"kind": "taken"}, "the kind taken is taken in app tidy"),
        ({"aliases": ("taken",)}, "the kind taken is taken in app tidy"),
        ({"queue": "Mail"}, "queue='Mail'; a queue is lower-case"),
        ({"queue": "q" * 41}, "a queue is lower-case letters, digits, _ . and -, at most 40"),
        ({"max_attempts": 0}, "max_attempts=0; from 1 to 1,000"),
        ({"max_attempts": 1001}, "max_attempts=1001; from 1 to 1,000"),
        ({"timeout": timedelta(0)}, "timeout=0:00:00; give a positive time"),
        ({"unique_args": ("product",)}, "unique_args names product, no parameter; it has product_id"),
    ],
)
def test_a_jobs_option_that_is_out_of_range_is_refused(options: dict[str, object], words: str) -> None:
    app = App("tidy")
    app.job(kind="taken")(broken_products)
    decorate: Callable[..., Callable[..., object]] = app.job

    def mend(product_id: int) -> None:
        pass

    with pytest.raises(AppError, match=rf"test_app_rules\.py:\d+: job .*{words}"):
        decorate(**options)(mend)


def test_a_kind_may_not_be_taken_twice_by_itself() -> None:
    app, _ = new_app()

    def again(product_id: int) -> None:
        pass

    with pytest.raises(AppError, match="kinds and aliases are unique"):
        app.job(kind="fresh", aliases=("fresh",))(again)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "Stuck"}, "'Stuck' is not like stuck_publications; give one with name="),
        ({"every": None}, "needs exactly one of every"),
        ({"cron": "* * * * *"}, "needs exactly one of every"),
        ({"every": timedelta(milliseconds=500)}, "every=0.5 s is under 1 s"),
        ({"limit": 0}, "limit=0; from 1 to 10,000"),
        ({"limit": 10_001}, "limit=10001; from 1 to 10,000"),
        ({"scan_bound": 99}, "scan_bound=99 is less than limit=100"),
        ({"catch_up": 0}, "catch_up=0; 'none', 'latest' or a number"),
        ({"catch_up": True}, "catch_up=True; 'none', 'latest' or a number"),
        ({"catch_up": "all"}, "catch_up='all'; 'none', 'latest' or a number"),
        ({"overlap": "drop"}, "overlap='drop'; 'skip' or 'queue'"),
        ({"statement_timeout": timedelta(milliseconds=99)}, "100 ms is the least"),
        ({"jitter": EVERY}, "jitter=0:01:00; give a time from 0 to less than the interval"),
    ],
)
def test_a_sweeps_option_that_is_out_of_range_is_refused(options: dict[str, object], words: str) -> None:
    app, mend = new_app()
    decorate: Callable[..., Callable[..., object]] = app.sweep

    with pytest.raises(AppError, match=rf"test_app_rules\.py:\d+: sweep .*{words}"):
        decorate(**{"enqueues": mend, "every": EVERY, **options})(broken_products)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (lambda: select(products.c.id).order_by(products.c.id), r"the column id is no parameter of mend, which takes product_id"),
        (lambda: select(products.c.id.label("product_id")), r"the rows have no order, so old ones may wait for ever"),
        (lambda: select(text("1")).order_by(text("1")), "no column for product_id"),
        (lambda: "SELECT 1", "returned str; return a sqlalchemy select"),
        (lambda: None, "returned NoneType; return a sqlalchemy select"),
    ],
)
def test_a_select_that_does_not_fit_the_job_is_refused(statement: Callable[[], SelectBase], words: str) -> None:
    app, mend = new_app()

    with pytest.raises(AppError, match=words):
        app.sweep(enqueues=mend, every=EVERY, name="stuck")(statement)


def test_names_and_jobs_belong_to_one_application() -> None:
    app, mend = new_app()
    _, foreign = new_app()
    app.sweep(enqueues=mend, every=EVERY)(broken_products)

    with pytest.raises(AppError, match="the name is taken in app tidy"):
        app.sweep(enqueues=mend, every=EVERY)(broken_products)
    with pytest.raises(AppError, match="a job of another app"):
        app.sweep(enqueues=foreign, every=EVERY, name="other")(broken_products)


def test_a_registered_job_is_still_its_function_and_answers_to_its_former_names() -> None:
    app = App("tidy")

    @app.job(kind="double", aliases=("twice",), queue="fast")
    def double(number: int) -> int:
        return 2 * number

    assert double(21) == 42
    assert app.job_for("double") is double
    assert app.job_for("twice") is double
    assert app.job_for("thrice") is None
    assert app.queues() == ("fast",)
    assert set(app.kinds()) == {"double", "twice"}


@pytest.mark.parametrize(
    ("target", "source", "words"),
    [
        ("tidy", "", "'tidy' is not module:attribute"),
        (":app", "", "':app' is not module:attribute"),
        ("nowhere_to_be_found:app", "", "no module nowhere_to_be_found in"),
        ("given_app:app", "import nowhere_to_be_found", r"given_app\.py:1: given_app does not import: ModuleNotFoundError"),
        ("given_app:app", "x = 1\n1 / 0", r"given_app\.py:2: given_app does not import: ZeroDivisionError"),
        ("given_app:app", "def broken(:", "given_app does not import: SyntaxError"),
        ("given_app:missing", "app = 1", r"given_app\.py: has no missing; --app given_app:missing needs an App"),
        ("given_app:app", "app = 1", "app is int; it must be a sweephand.App"),
        ("given_app:app", "def app(): return 1", "app is int; it must be a sweephand.App"),
        ("given_app:app", "import sweephand\ndef app(): return sweephand.App('No')", "a name is lower-case letters"),
        ("given_app:app", "def app(name): return name", r"given_app:app fails when it is called: TypeError: app\(\) missing 1"),
        ("given_app:app", "def app():\n    1 / 0", r"given_app\.py:2: given_app:app fails when it is called: ZeroDivisionError"),
    ],
)
def test_an_application_that_does_not_load_says_why_in_one_error(
    target: str, source: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "given_app.py").write_text(textwrap.dedent(source))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "given_app", raising=False)

    with pytest.raises(AppError, match=words):
        load_app(target)


@pytest.mark.parametrize("definition", ["app = sweephand.App('given')", "def app(): return sweephand.App('given')"])
def test_an_application_or_a_function_that_makes_one_is_loaded(
    definition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "given_app.py").write_text(f"import sweephand\n{definition}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "given_app", raising=False)

    assert load_app("given_app:app").name == "given"
