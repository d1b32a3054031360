"""Settings are read once, and whatever is wrong with them is said in one go."""

import pytest

from sweephand import SettingsError
from sweephand.settings import ElectorKind, Environment, LogFormat, Settings, load_settings, misspelt_variables
from sweephand.settings.loading import variable

URL = "postgresql://shop:swordfish@db:5432/shop"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBERNETES_SERVICE_HOST", "POD_NAME", *map(variable, Settings.model_fields)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATABASE_URL", URL)


def _problems() -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value).splitlines()


def test_defaults_need_only_a_database() -> None:
    settings = load_settings()

    assert settings.database_url == URL
    assert settings.environment is Environment.PRODUCTION
    assert settings.log_format is LogFormat.CONSOLE
    assert (settings.api_port, settings.metrics_port, settings.worker_threads) == (8000, 9090, 10)
    assert settings.worker_queues == ()
    assert settings.elector is ElectorKind.POSTGRES
    assert (settings.lease_duration_seconds, settings.renew_deadline_seconds, settings.retry_period_seconds) == (15, 10, 2)
    assert settings.lease_name_for("shop") == "sweephand-shop"


def test_inside_a_cluster_the_lease_is_kubernetes_and_the_identity_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("POD_NAME", "dispatcher-0")

    settings = load_settings()

    assert settings.elector is ElectorKind.KUBERNETES
    assert settings.identity == "dispatcher-0"


def test_an_option_wins_over_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPHAND_APP", "shop:app")

    assert load_settings(app="tidy:app").app == "tidy:app"
    assert load_settings(app=None).app == "shop:app"


def test_an_empty_variable_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPHAND_LISTEN_DATABASE_URL", "")
    monkeypatch.setenv("SWEEPHAND_WORKER_THREADS", "")

    settings = load_settings()

    assert settings.listen_database_url is None
    assert settings.worker_threads == 10


def test_queues_are_a_comma_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPHAND_WORKER_QUEUES", " mail, default ,mail,")

    assert load_settings().worker_queues == ("mail", "default")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("SWEEPHAND_WORKER_THREADS", "abc", "SWEEPHAND_WORKER_THREADS=abc: must be a whole number from 1 to 256"),
        ("SWEEPHAND_WORKER_THREADS", "0", "SWEEPHAND_WORKER_THREADS=0: must be a whole number from 1 to 256"),
        ("SWEEPHAND_WORKER_THREADS", "2.5", "SWEEPHAND_WORKER_THREADS=2.5: must be a whole number from 1 to 256"),
        ("SWEEPHAND_GRACE_SECONDS", "nan", "SWEEPHAND_GRACE_SECONDS=nan: must be a number from 0 to 86400"),
        ("SWEEPHAND_POLL_INTERVAL_SECONDS", "inf", "SWEEPHAND_POLL_INTERVAL_SECONDS=inf: must be a number from 0.05 to 3600"),
        ("SWEEPHAND_LISTEN", "maybe", "SWEEPHAND_LISTEN=maybe: must be true or false"),
        ("SWEEPHAND_LOG_FORMAT", "xml", "SWEEPHAND_LOG_FORMAT=xml: must be console or json"),
        ("SWEEPHAND_ELECTOR", "raft", "SWEEPHAND_ELECTOR=raft: must be kubernetes, postgres or always"),
        ("SWEEPHAND_APP", "shop", "SWEEPHAND_APP=shop: must be of the form module:attribute, as in storefront.app:app"),
        (
            "SWEEPHAND_LEASE_DURATION_SECONDS",
            "1.5",
            "SWEEPHAND_LEASE_DURATION_SECONDS=1.5: must be a whole number from 1 to 3600",
        ),
        (
            "SWEEPHAND_WORKER_QUEUES",
            "mail,Big",
            (
                "SWEEPHAND_WORKER_QUEUES=mail,Big: must be queue names separated by commas; 'Big' is none: "
                "use 1 to 40 of a-z, 0-9, _ . - and begin with a letter or digit"
            ),
        ),
        (
            "SWEEPHAND_API_PORT",
            "tcp://10.0.0.7:80",
            (
                "SWEEPHAND_API_PORT=tcp://10.0.0.7:80: must be a port number; this one is Kubernetes' link to a Service "
                "of that name: set enableServiceLinks: false in the pod"
            ),
        ),
        (
            "SWEEPHAND_METRICS_PORT",
            "8000",
            "SWEEPHAND_API_PORT=8000 and SWEEPHAND_METRICS_PORT=8000: must be two different ports",
        ),
        (
            "SWEEPHAND_RESCUE_AFTER_SECONDS",
            "14",
            (
                "SWEEPHAND_RESCUE_AFTER_SECONDS=14 and SWEEPHAND_HEARTBEAT_SECONDS=5: the first must be at least three times "
                "the second, so 15 or more"
            ),
        ),
        (
            "SWEEPHAND_RENEW_DEADLINE_SECONDS",
            "15",
            (
                "SWEEPHAND_LEASE_DURATION_SECONDS=15 and SWEEPHAND_RENEW_DEADLINE_SECONDS=15: the lease must be longer than "
                "the deadline"
            ),
        ),
        (
            "SWEEPHAND_RETRY_PERIOD_SECONDS",
            "9",
            (
                "SWEEPHAND_RENEW_DEADLINE_SECONDS=10 and SWEEPHAND_RETRY_PERIOD_SECONDS=9: the deadline must be more than "
                "1.2 times the retry period, so more than 10.8"
            ),
        ),
    ],
)
def test_a_wrong_setting_names_itself_its_value_and_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, problem: str
) -> None:
    monkeypatch.setenv(name, value)

    assert _problems() == [problem]


def test_all_problems_are_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.setenv("SWEEPHAND_WORKER_THREADS", "abc")
    monkeypatch.setenv("SWEEPHAND_LISTEN", "2")

    assert _problems() == [
        "DATABASE_URL: is not set; it must be of the form postgresql://user:password@host:5432/name",
        "SWEEPHAND_WORKER_THREADS=abc: must be a whole number from 1 to 256",
        "SWEEPHAND_LISTEN=2: must be true or false",
    ]


@pytest.mark.parametrize("name", ["DATABASE_URL", "SWEEPHAND_LISTEN_DATABASE_URL"])
@pytest.mark.parametrize("value", ["mysql://shop:swordfish@db/shop", "swordfish", "postgresql://shop:swordfish@db:port/shop"])
def test_a_wrong_database_url_is_named_but_never_shown(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)

    problems = _problems()

    assert len(problems) == 1
    assert problems[0].startswith(f"{name}: must be of the form postgresql://")
    assert "swordfish" not in problems[0]


def test_settings_shown_or_logged_hide_their_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPHAND_LISTEN_DATABASE_URL", URL)

    settings = load_settings()

    assert "swordfish" not in repr(settings) + str(settings) + f"{settings}"


def test_a_value_of_many_lines_stays_one_problem_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPHAND_WORKER_THREADS", "1\n2" + "x" * 500)

    problems = _problems()

    assert len(problems) == 1
    assert len(problems[0]) < 200


def test_near_misses_are_found_and_kubernetes_own_variables_are_not() -> None:
    environment = {"SWEEPHAND_WORKER_THREAD": "5", "SWEEPHAND_API_SERVICE_HOST": "10.0.0.7", "SWEEPHAND_LISTEN": "true"}

    assert misspelt_variables(environment) == {"SWEEPHAND_WORKER_THREAD": "SWEEPHAND_WORKER_THREADS"}


def test_settings_do_not_change() -> None:
    settings = load_settings()

    with pytest.raises(ValueError, match="frozen"):
        settings.worker_threads = 3  # type: ignore[misc]  # that it is refused is the point
