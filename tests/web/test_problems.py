"""Every HTTP error of a served application is a problem with its fields."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.processes import Commands
from tests.web.servers import RunningApi, start_api


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    """One API for all tests of this file; none of them needs a database, and there is none."""
    commands = Commands(tmp_path_factory.mktemp("problems"), database_url="postgresql://127.0.0.1:1/none")
    yield start_api(commands)
    commands.destroy_all()


def _problem(response: httpx.Response) -> dict[str, object]:
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, object] = response.json()
    assert set(problem) == {"type", "title", "status", "detail", "instance", "errors"}
    assert problem["status"] == response.status_code
    assert problem["type"] == "about:blank"
    return problem


def test_wrong_fields_are_named(api: RunningApi) -> None:
    response = httpx.post(f"{api.url}/api/v1/products", json={"name": "", "price_cents": -1})

    problem = _problem(response)
    assert response.status_code == 422
    assert problem["instance"] == "/api/v1/products"
    assert problem["errors"] == [
        {"field": "body.name", "message": "String should have at least 1 character"},
        {"field": "body.price_cents", "message": "Input should be greater than or equal to 0"},
    ]
    assert problem["detail"] == "2 fields are wrong; the first: body.name: String should have at least 1 character"


def test_wrong_parts_of_the_url_are_named(api: RunningApi) -> None:
    response = httpx.get(f"{api.url}/api/v1/products/nine?page=0")

    errors = _problem(response)["errors"]
    assert isinstance(errors, list)
    assert [error["field"] for error in errors] == ["path.product_id", "query.page"]


@pytest.mark.parametrize(
    "body",
    [b"{", b"", b"null", b'"text"', b"[1]", b'{"name": \xff}', b"[" * 100_000, b'{"name": "\\ud800", "price_cents": 1}'],
    ids=["cut", "empty", "null", "text", "list", "not-utf8", "nested", "lone-surrogate"],
)
def test_a_wrong_body_is_the_senders_error(api: RunningApi, body: bytes) -> None:
    response = httpx.post(f"{api.url}/api/v1/products", content=body, headers={"Content-Type": "application/json"})

    assert _problem(response)["status"] in {400, 422}


def test_broken_json_says_where_it_breaks(api: RunningApi) -> None:
    headers = {"Content-Type": "application/json"}

    response = httpx.post(f"{api.url}/api/v1/products", content=b'{"name": "x",}', headers=headers)

    assert response.status_code == 400
    errors = _problem(response)["errors"]
    assert isinstance(errors, list)
    assert errors[0]["field"] == "body"
    assert errors[0]["message"].startswith("is not JSON: ")
    assert "at character" in errors[0]["message"]


def test_many_wrong_items_are_cut_to_the_first_fifty(api: RunningApi) -> None:
    response = httpx.post(f"{api.url}/api/v1/products/bulk", json=[{"name": "", "price_cents": 1}] * 5_000)

    problem = _problem(response)
    errors = problem["errors"]
    assert isinstance(errors, list)
    assert len(errors) == 50
    assert errors[49]["field"] == "body.49.name"
    assert str(problem["detail"]).startswith("5000 fields are wrong; the first: body.0.name: ")


def test_unknown_paths_and_methods_are_problems(api: RunningApi) -> None:
    missing = httpx.get(f"{api.url}/nothing/here")
    wrong_method = httpx.delete(f"{api.url}/broken")

    assert missing.status_code == 404
    assert _problem(missing)["detail"] == "there is nothing at /nothing/here"
    assert wrong_method.status_code == 405
    assert _problem(wrong_method)["detail"] == "/broken does not take DELETE"
    assert wrong_method.headers["allow"] == "GET"


def test_own_errors_keep_their_meaning(api: RunningApi) -> None:
    answers = {name: httpx.get(f"{api.url}/errors/{name}") for name in ("not-found", "conflict", "database", "teapot")}

    assert {name: answer.status_code for name, answer in answers.items()} == {
        "not-found": 404,
        "conflict": 409,
        "database": 503,
        "teapot": 418,
    }
    assert _problem(answers["conflict"])["detail"] == "job 42 is running; wait for it or cancel it first"
    assert _problem(answers["database"])["detail"] == "the database is not available; try again"
    assert answers["database"].headers["retry-after"] == "1"
    assert _problem(answers["teapot"])["detail"] == "a teapot"
    assert answers["teapot"].headers["x-pot"] == "tea"


def test_an_unexpected_error_leaks_nothing_and_is_logged_once(api: RunningApi) -> None:
    response = httpx.get(f"{api.url}/broken")

    problem = _problem(response)
    assert response.status_code == 500
    assert "swordfish" not in json.dumps(problem)
    api.command.wait_for_log("RuntimeError: the password is swordfish")
    assert api.command.log.count("RuntimeError: the password is swordfish") == 1
    assert "request_failed" in api.command.log


def test_an_error_in_the_middle_of_an_answer_cuts_it(api: RunningApi) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"{api.url}/broken-later")

    api.command.wait_for_log("RuntimeError: in the middle")
    assert httpx.get(f"{api.url}/api/v1/products/1").status_code == 200


def test_a_body_over_1_mb_is_refused_by_its_declared_length(api: RunningApi) -> None:
    response = httpx.post(f"{api.url}/api/v1/products", json={"name": "x" * 1_048_576, "price_cents": 1})

    assert response.status_code == 413
    assert _problem(response)["detail"] == "the body is larger than 1048576 bytes; send less"


def test_a_body_over_1_mb_without_a_length_is_refused(api: RunningApi) -> None:
    def chunks() -> Iterator[bytes]:
        yield b'{"name": "'
        for _ in range(32):
            yield b"x" * 65_536
        yield b'", "price_cents": 1}'

    response = httpx.post(f"{api.url}/api/v1/products", content=chunks(), headers={"Content-Type": "application/json"})

    assert response.status_code == 413
    assert _problem(response)["instance"] == "/api/v1/products"


def test_a_body_of_just_1_mb_is_read(api: RunningApi) -> None:
    frame = len(b'{"name": "", "price_cents": 1}')
    body = b'{"name": "' + b"x" * (1_048_576 - frame) + b'", "price_cents": 1}'

    response = httpx.post(f"{api.url}/api/v1/products", content=body, headers={"Content-Type": "application/json"})

    assert len(body) == 1_048_576
    assert response.status_code == 422  # the name is too long, which only who reads it can know


def test_an_absurd_content_length_is_refused(api: RunningApi) -> None:
    address = urlsplit(api.url)
    with socket.create_connection((address.hostname, address.port or 0), timeout=5) as connection:
        connection.sendall(b"POST /api/v1/products HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999\r\n\r\n")
        answer = connection.recv(4096)

    assert answer.startswith(b"HTTP/1.1 413 ")


def test_the_openapi_document_shows_the_problem(api: RunningApi) -> None:
    document = httpx.get(f"{api.url}/openapi.json").json()

    responses = document["paths"]["/api/v1/products"]["post"]["responses"]
    assert set(responses) == {"201", "4XX"}
    assert "application/problem+json" in responses["4XX"]["content"]
