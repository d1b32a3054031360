"""`sweephand sweeps`, through the command line, on a real PostgreSQL."""

import re

import psycopg
import pytest

from tests.support.operator import Operator
from tests.support.processes import Commands
from tests.support.sweeps import insert_leader, insert_sweep, insert_tick

HALF_HOURS = 36.5 * 3600  # shown as `1d 12h`, also when the test is slow
APP = "tests.cli.apps:app"


def _audit(connection: psycopg.Connection) -> list[tuple[str, str, str, str | None]]:
    rows = connection.execute("SELECT actor, action, target, note FROM sweephand.audit ORDER BY id").fetchall()
    return [(str(actor), str(action), str(target), note) for actor, action, target, note in rows]


def _words(line: str) -> str:
    return " ".join(line.split())


def test_list_shows_the_next_tick_and_the_last_run(operator: Operator, connection: psycopg.Connection) -> None:
    insert_leader(connection)
    insert_sweep(connection, next_in_seconds=HALF_HOURS)
    insert_tick(connection, ago_seconds=HALF_HOURS, enqueued=3, skipped_duplicates=40)
    insert_tick(connection, ago_seconds=60, outcome="missed", cause="no_leader", covers=4)

    head, row, blank, leader = operator.run("sweeps", "list").lines

    assert _words(head) == "SWEEP SCHEDULE NEXT NEXT AT LAST RUN ENQUEUED DUPLICATES MISSED STATUS"
    assert re.fullmatch(
        r"untidy_shelves every 60 s in 1d 12h \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ ok 1d 12h ago 3 40 4 active", _words(row)
    )
    assert blank == ""
    assert re.fullmatch(r"shop: dispatcher-0 leads since \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ, term 1", leader)


def test_sweeps_of_other_applications_bear_their_names(operator: Operator, connection: psycopg.Connection) -> None:
    insert_sweep(connection)
    insert_sweep(connection, app="billing")

    paths = [line.split()[0] for line in operator.run("sweeps", "list").lines]

    assert paths == ["SWEEP", "billing/untidy_shelves", "shop/untidy_shelves"]


def test_a_sweep_that_the_leaders_code_has_no_longer_is_an_orphan(operator: Operator, connection: psycopg.Connection) -> None:
    insert_leader(connection, term=2)
    insert_sweep(connection, "current", term=2)
    insert_sweep(connection, "former", term=1)

    listed = operator.run("sweeps", "list", "--json").rows("sweeps")

    assert [sweep["status"] for sweep in listed] == ["active", "orphan"]
    assert "orphan: not in the leader's code" in operator.run("sweeps", "list").out


def test_a_sweep_whose_time_has_passed_is_overdue(operator: Operator, connection: psycopg.Connection) -> None:
    insert_sweep(connection, next_in_seconds=-HALF_HOURS)

    assert "1d 12h late" in operator.run("sweeps", "list").out
    assert "status     overdue: is a dispatcher running?\n" in operator.run("sweeps", "show", "untidy_shelves").out


def test_the_code_is_compared_when_it_is_given(operator: Operator, connection: psycopg.Connection) -> None:
    insert_sweep(connection, "removed")
    insert_sweep(connection, "foreign", app="billing")

    listed = operator.run("sweeps", "list", "--app", APP)

    assert re.search(r"shop/removed .* orphan: not in this code\n", listed.out)
    assert re.search(r"billing/foreign .* of another application\n", listed.out)
    assert re.search(r"shop/untidy_shelves +not registered yet: no dispatcher led with this code\n", listed.out)
    insert_sweep(connection, schedule="every 3600 s")
    shown = operator.run("sweeps", "show", "shop/untidy_shelves", "--app", APP)
    assert "code       schedule: every 3600 s here, every 60 s in the code\n" in shown.out


def test_pause_and_resume_say_who_and_why(operator: Operator, connection: psycopg.Connection) -> None:
    insert_sweep(connection)

    paused = operator.run("sweeps", "pause", "untidy_shelves", "--by", "ana@example", "--note", "stock taking")

    assert paused.out == "shop/untidy_shelves is paused\n"
    assert "paused by ana@example: stock taking" in operator.run("sweeps", "list").out
    shown = operator.run("sweeps", "show", "untidy_shelves")
    assert re.search(r"^paused     .* by ana@example: stock taking$", shown.out, re.MULTILINE)
    assert re.search(r"ana@example  sweep\.pause  stock taking$", shown.out, re.MULTILINE)
    assert operator.run("sweeps", "resume", "untidy_shelves", "--by", "bo").out == "shop/untidy_shelves ticks again\n"
    assert _audit(connection) == [
        ("ana@example", "sweep.pause", "shop/untidy_shelves", "stock taking"),
        ("bo", "sweep.resume", "shop/untidy_shelves", None),
    ]


def test_pausing_again_keeps_the_moment_and_replaces_who(operator: Operator, connection: psycopg.Connection) -> None:
    insert_sweep(connection)
    operator.run("sweeps", "pause", "untidy_shelves", "--by", "ana")
    first = operator.run("sweeps", "show", "untidy_shelves", "--json").part("sweep")

    again = operator.run("sweeps", "pause", "untidy_shelves", "--by", "bo", "--json")

    second = operator.run("sweeps", "show", "untidy_shelves", "--json").part("sweep")
    assert again.document["is_changed"] is False
    assert (second["paused_at"], second["paused_by"]) == (first["paused_at"], "bo")


def test_resuming_what_is_not_paused_changes_nothing(operator: Operator, connection: psycopg.Connection) -> None:
    insert_sweep(connection)

    assert operator.run("sweeps", "resume", "untidy_shelves").out == "shop/untidy_shelves was not paused\n"
    assert _audit(connection) == []


def test_who_is_the_user_of_this_host_unless_said(operator: Operator, connection: psycopg.Connection) -> None:
    insert_sweep(connection)

    operator.run("sweeps", "pause", "untidy_shelves")

    assert re.fullmatch(r"[^@\s]+@\S+", _audit(connection)[0][0])


@pytest.mark.parametrize("command", ["show", "pause", "resume", "run", "ticks"])
def test_an_unknown_sweep_is_one_line_with_the_known_ones(
    operator: Operator, connection: psycopg.Connection, command: str
) -> None:
    insert_sweep(connection)

    answer = operator.run("sweeps", command, "untidy", exit_code=1)

    assert answer.err == "Error: there is no sweep untidy; known are shop/untidy_shelves\n"


def test_a_name_of_two_applications_must_be_said_in_full(operator: Operator, connection: psycopg.Connection) -> None:
    insert_sweep(connection)
    insert_sweep(connection, app="billing")

    answer = operator.run("sweeps", "pause", "untidy_shelves", exit_code=1)

    which = "billing/untidy_shelves or shop/untidy_shelves"
    assert answer.err == f"Error: several applications have a sweep untidy_shelves; say which: {which}\n"
    operator.run("sweeps", "pause", "billing/untidy_shelves")
    assert [row["status"] for row in operator.run("sweeps", "list", "--json").rows("sweeps")] == ["paused", "active"]


def test_ticks_tell_what_ran_and_why_others_did_not(operator: Operator, connection: psycopg.Connection) -> None:
    insert_sweep(connection)
    insert_tick(connection, ago_seconds=4 * HALF_HOURS, outcome="error", error="relation shelf does not exist")
    insert_tick(connection, ago_seconds=3 * HALF_HOURS, outcome="missed", cause="no_leader", covers=499)
    insert_tick(connection, ago_seconds=2 * HALF_HOURS, outcome="ok", enqueued=3, skipped_duplicates=1)
    insert_tick(connection, ago_seconds=1 * HALF_HOURS, outcome="fenced", error="term 1 is over")

    lines = [_words(line) for line in operator.run("sweeps", "ticks", "untidy_shelves").lines]

    assert lines[0] == "PLANNED AGO OUTCOME REASON LATE TOOK ENQUEUED DUPLICATES REFUSED TERM TICK NOTE"
    assert [line.split("Z ")[1] for line in lines[1:]] == [
        "1d 12h ago fenced tick 40ms 1s 0 0 0 1 4 term 1 is over",
        "3d 1h ago ok tick 40ms 1s 3 1 0 1 3",
        "4d 13h ago missed tick 1 2 no leader; stands for 499 ticks",
        "6d 2h ago error tick 40ms 1s 0 0 0 1 1 relation shelf does not exist",
    ]


def test_ticks_are_chosen_by_sweep_outcome_and_time(operator: Operator, connection: psycopg.Connection) -> None:
    insert_sweep(connection)
    insert_tick(connection, ago_seconds=7200)
    insert_tick(connection, ago_seconds=60, outcome="error", error="no")
    insert_tick(connection, ago_seconds=30)
    insert_tick(connection, "other", ago_seconds=10)

    def chosen(*options: str) -> list[object]:
        return [tick["id"] for tick in operator.run("sweeps", "ticks", *options, "--json").rows("ticks")]

    assert chosen() == ["4", "3", "2", "1"]
    assert chosen("untidy_shelves") == ["3", "2", "1"]
    assert chosen("--outcome", "error", "--outcome", "fenced") == ["2"]
    assert chosen("untidy_shelves", "--since", "1h") == ["3", "2"]
    assert chosen("--limit", "1") == ["4"]


def test_run_asks_for_a_tick_and_a_second_request_joins_the_first(operator: Operator, connection: psycopg.Connection) -> None:
    insert_sweep(connection)

    first = operator.run("sweeps", "run", "untidy_shelves", "--by", "ana", "--json")
    second = operator.run("sweeps", "run", "untidy_shelves", "--by", "bo", "--json")

    assert (first.document["is_new"], second.document["is_new"]) == (True, False)
    assert first.document["requested_at"] == second.document["requested_at"]
    assert re.search(r"^run asked  .* by ana, not run yet$", operator.run("sweeps", "show", "untidy_shelves").out, re.MULTILINE)
    assert [entry[:2] for entry in _audit(connection)] == [("ana", "sweep.run"), ("bo", "sweep.run")]


def test_waiting_for_a_tick_that_nobody_runs_ends_with_who_led_last(operator: Operator, connection: psycopg.Connection) -> None:
    insert_leader(connection, term=7)
    insert_sweep(connection)

    answer = operator.run("sweeps", "run", "untidy_shelves", "--wait", "--timeout", "0.1s", exit_code=1)

    assert answer.err == (
        "Error: no dispatcher ran shop/untidy_shelves within 0.1 s (dispatcher-0 led last, in term 7); the request stays, "
        "look whether one is running\n"
    )


def test_run_waits_for_the_real_dispatchers_tick_even_when_paused(operator: Operator, commands: Commands) -> None:
    commands.start("dispatcher", app=APP).wait_for_log("dispatched")
    operator.run("sweeps", "pause", "untidy_shelves")

    answer = operator.run("sweeps", "run", "untidy_shelves", "--wait", "--json")

    tick = answer.part("tick")
    assert (tick["reason"], tick["outcome"], tick["enqueued"], tick["skipped_duplicates"]) == ("manual", "ok", 0, 2)
    assert tick["planned_at"] == answer.document["requested_at"]
    assert "run_requested" not in operator.run("sweeps", "show", "untidy_shelves").out


def test_a_dispatcher_registers_what_the_code_has(operator: Operator, commands: Commands) -> None:
    commands.start("dispatcher", app=APP).wait_for_log("dispatched")

    listed = operator.run("sweeps", "list", "--app", APP, "--json")

    assert listed.document["unregistered"] == []
    assert listed.rows("sweeps")[0]["status"] == "active"


def test_no_sweeps_is_said_on_standard_error(operator: Operator) -> None:
    listed = operator.run("sweeps", "list")

    assert (listed.out, listed.err) == (
        "",
        "no sweep is registered; a dispatcher registers its application's when it leads\n",
    )
