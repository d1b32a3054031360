"""Fixtures of the end-to-end cases: the shop of a case's group, and the case itself, written down when it ends.

Each directory is a group: its cases run one after the other, groups beside each other. They share one shop, with the directory's
name unless `pytest.mark.shop` gives another; its values are in shops.json. A case that asks for no `cluster_shop` runs without a
cluster too, with `--on=processes`.
"""

import json
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e.system.case import Case
from e2e.system.cluster_prometheus import ClusterPrometheus
from e2e.system.cluster_shop import ClusterShop
from e2e.system.commands import REPOSITORY
from e2e.system.evidence import collect
from e2e.system.process_shop import ProcessShop
from e2e.system.shop import Shop

BUILD = REPOSITORY / "build" / "e2e"
SHOPS = ("ticks", "jobs", "quiet", "closed", "sweephand")
"""The namespaces of all shops, for Prometheus, which is told of them at the start."""
VALUES: dict[str, dict[str, object]] = json.loads((Path(__file__).parent / "shops.json").read_text(encoding="utf-8"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--on", choices=("cluster", "processes"), default="processes", help="where the shop runs")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "shop(name): the shop of these cases, where it is not the directory's")
    config.addinivalue_line("markers", "misses_ticks: its fault makes the shop miss ticks, so it runs after those that miss none")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # An alert that a case before has raised cannot show that this one raises none.
    items.sort(key=lambda item: item.get_closest_marker("misses_ticks") is not None)
    if config.getoption("--on") == "processes":
        needs_cluster = [item for item in items if {"cluster_shop", "prometheus"} & set(getattr(item, "fixturenames", ()))]
        config.hook.pytest_deselected(items=needs_cluster)
        items[:] = [item for item in items if item not in needs_cluster]


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterPrometheus]:
    """The cluster's Prometheus, which `python -m e2e` has installed."""
    found = ClusterPrometheus(tmp_path_factory.mktemp("prometheus"))
    yield found
    found.close()


@pytest.fixture(scope="session")
def cluster_shops() -> Iterator[dict[str, ClusterShop]]:
    """The shops that this process has installed, by group."""
    shops: dict[str, ClusterShop] = {}
    yield shops
    for shop in shops.values():
        shop.close()


@pytest.fixture
def cluster_shop(
    request: pytest.FixtureRequest,
    cluster_shops: dict[str, ClusterShop],
    prometheus: ClusterPrometheus,
    tmp_path_factory: pytest.TempPathFactory,
) -> ClusterShop:
    """The shop of this case's group, on the cluster, installed by the first case that asks."""
    name = _name(request)
    if name not in cluster_shops:
        directory = tmp_path_factory.mktemp(name)
        shop = ClusterShop(name, directory=directory, prometheus=prometheus, values=VALUES.get(name, {}))
        shop.install()
        cluster_shops[name] = shop
    return cluster_shops[name]


@pytest.fixture(scope="session")
def process_shops() -> Iterator[dict[str, ProcessShop]]:
    """The shops that run as processes of this one, by name."""
    shops: dict[str, ProcessShop] = {}
    with ExitStack() as running:
        yield shops
        for shop in shops.values():
            running.push(shop)


@pytest.fixture
def shop(request: pytest.FixtureRequest, process_shops: dict[str, ProcessShop], tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """The shop of this case, wherever this run has it."""
    if request.config.getoption("--on") == "cluster":
        found: ClusterShop = request.getfixturevalue("cluster_shop")
        return found
    name = _name(request)
    if name not in process_shops:
        process_shops[name] = ProcessShop(tmp_path_factory.mktemp(name), values=VALUES.get(name, {})).__enter__()
    return process_shops[name]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[_FAILED] = report.failed
    return report


_FAILED = pytest.StashKey[bool]()


@pytest.fixture
def case(request: pytest.FixtureRequest, shop: Shop) -> Iterator[Case]:
    """The case that the test is: see `Case`. Its title is the first line of its docstring, or of the file's."""
    name = request.node.name.removeprefix("test_")
    title = (request.function.__doc__ or request.module.__doc__ or name).splitlines()[0]
    running = Case.begin(shop, name=name, title=title)
    yield running
    has_failed = request.node.stash.get(_FAILED, True)
    if has_failed:
        collect(shop, BUILD / "evidence" / name, since=running.began_at)
    running.end(BUILD / "cases", outcome="failed" if has_failed else "passed")


def _name(request: pytest.FixtureRequest) -> str:
    marker = request.node.get_closest_marker("shop")
    return str(marker.args[0]) if marker else request.path.parent.name
