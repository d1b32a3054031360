"""What the shop can be told from outside, and what it says of what is wrong."""

import pytest

from storefront.settings import load_settings
from sweephand import SettingsError

DATABASE_URL = "postgresql://shop:s3cret@db/shop"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "TIMEOUT", "MIN_DELAY", "MAX_DELAY", "FAILURE_RATE"):
        monkeypatch.delenv(f"WAREHOUSE_{name}", raising=False)
    for name in ("SCAN_INTERVAL", "BATCH_LIMIT"):
        monkeypatch.delenv(f"STUCK_PUBLICATIONS_{name}", raising=False)
    for name in ("SMTP_URL", "MAIL_FROM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATABASE_URL", DATABASE_URL)


def test_a_database_is_all_that_must_be_set() -> None:
    settings = load_settings()

    assert settings.database_url == DATABASE_URL
    assert settings.warehouse_url is None
    assert (settings.warehouse_min_delay_seconds, settings.warehouse_max_delay_seconds) == (5, 10)
    assert settings.smtp_url is None
    assert settings.mail_from == "shop@example.com"
    assert settings.scan_interval_seconds == 60
    assert settings.batch_limit == 100


def test_every_setting_is_read_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAREHOUSE_URL", "https://warehouse.example/api")
    monkeypatch.setenv("WAREHOUSE_TIMEOUT", "2.5")
    monkeypatch.setenv("WAREHOUSE_MIN_DELAY", "0")
    monkeypatch.setenv("WAREHOUSE_MAX_DELAY", "0.5")
    monkeypatch.setenv("WAREHOUSE_FAILURE_RATE", "0.25")
    monkeypatch.setenv("SMTP_URL", "smtp://mail.example:25")
    monkeypatch.setenv("MAIL_FROM", "orders@shop.example")
    monkeypatch.setenv("STUCK_PUBLICATIONS_SCAN_INTERVAL", "5")
    monkeypatch.setenv("STUCK_PUBLICATIONS_BATCH_LIMIT", "7")

    settings = load_settings()

    assert settings.warehouse_url == "https://warehouse.example/api"
    assert settings.warehouse_timeout_seconds == 2.5
    assert (settings.warehouse_min_delay_seconds, settings.warehouse_max_delay_seconds) == (0, 0.5)
    assert settings.warehouse_failure_rate == 0.25
    assert settings.smtp_url == "smtp://mail.example:25"
    assert settings.mail_from == "orders@shop.example"
    assert settings.scan_interval_seconds == 5
    assert settings.batch_limit == 7


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("WAREHOUSE_URL", "warehouse.example", "http"),
        ("WAREHOUSE_TIMEOUT", "0", "greater than 0"),
        ("WAREHOUSE_TIMEOUT", "60", "less than or equal to 50"),
        ("WAREHOUSE_MIN_DELAY", "-1", "greater than or equal to 0"),
        ("WAREHOUSE_MIN_DELAY", "soon", "a valid number"),
        ("WAREHOUSE_MAX_DELAY", "nan", "less than or equal to 3600"),
        ("WAREHOUSE_FAILURE_RATE", "1.5", "less than or equal to 1"),
        ("MAIL_FROM", "shop", "match pattern"),
        ("MAIL_FROM", "Shop <shop@example.com>", "match pattern"),
        ("MAIL_FROM", "shop@bücher.example", "match pattern"),
        ("STUCK_PUBLICATIONS_SCAN_INTERVAL", "0", "greater than or equal to 1"),
        ("STUCK_PUBLICATIONS_BATCH_LIMIT", "10001", "less than or equal to 10000"),
        ("STUCK_PUBLICATIONS_BATCH_LIMIT", "2.5", "a valid integer"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, allowed: str
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(SettingsError) as refusal:
        load_settings()

    line = str(refusal.value)
    assert line.startswith(f"{variable}={value}: ")
    assert allowed in line
    assert "\n" not in line


def test_delays_that_contradict_each_other_are_named_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAREHOUSE_MIN_DELAY", "11")

    with pytest.raises(SettingsError, match=r"^WAREHOUSE_MIN_DELAY=11 and WAREHOUSE_MAX_DELAY=10: "):
        load_settings()


def test_without_a_database_its_variable_and_form_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL")

    with pytest.raises(SettingsError, match=r"^DATABASE_URL: is not set; it must be of the form postgresql://"):
        load_settings()


@pytest.mark.parametrize("url", ["mysql://shop:s3cret@db/shop", "s3cret"])
def test_a_wrong_database_url_is_named_but_never_shown(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("DATABASE_URL", url)

    with pytest.raises(SettingsError, match=r"^DATABASE_URL: ") as refusal:
        load_settings()

    assert "s3cret" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__context__ is None


@pytest.mark.parametrize(
    "url",
    [
        "mail.example:25",
        "smtp://mail.example",
        "smtp://:25",
        "smtp://mail.example:0",
        "smtp://mail.example:65536",
        "smtp://mail.example:25/",
        "smtp://shop:s3cret@mail.example:25",
        "https://s3cret@mail.example:25",
    ],
)
def test_a_wrong_mail_server_is_named_with_its_form_but_never_shown(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("SMTP_URL", url)

    with pytest.raises(SettingsError) as refusal:
        load_settings()

    assert str(refusal.value) == "SMTP_URL: must be of the form smtp://host:port"
