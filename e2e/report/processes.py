"""Bring together what scrapes and ticks say of one process: scrapes know addresses, ticks identities, and both know the time."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from e2e.report.records import CaseRecord, LeaderSeries, PlannedTick

_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+(:\d+)?")
_POD = re.compile(r"\b[a-z0-9-]*?[a-z]+-[a-z0-9]{6,10}-([a-z0-9]{5})\b")


@dataclass(frozen=True, slots=True)
class Process:
    """Be one dispatcher: what it said of itself at its scrapes, and the ticks that it ran."""

    name: str
    samples: tuple[tuple[float, bool], ...]
    ticks: tuple[PlannedTick, ...]


def short_name(text: str) -> str:
    """Return a text with the names of pods shortened to their last part."""
    return _POD.sub(r"\1", text)


def processes(case: CaseRecord, *, patience: float) -> list[Process]:
    """Return the dispatchers of a case.

    Args:
        case: What they did.
        patience: How far from a tick a scrape may be to tell who ran it, in seconds.
    """
    ran: dict[str, list[PlannedTick]] = {}
    for tick in case.ticks:
        if tick.has_run and tick.started is not None:
            ran.setdefault(tick.dispatcher, []).append(tick)
    owners = _owners(case.leaders, ran, patience=patience)
    scraped = [
        _process(one, {identity: ticks for identity, ticks in ran.items() if owners.get(identity) == index})
        for index, one in enumerate(case.leaders)
    ]
    only_in_ledger = [
        _process(LeaderSeries("", ()), {identity: ticks}) for identity, ticks in ran.items() if identity not in owners
    ]
    return scraped + only_in_ledger


def _process(one: LeaderSeries, ran: Mapping[str, Sequence[PlannedTick]]) -> Process:
    return Process(_name(one.process, list(ran)), one.samples, tuple(tick for ticks in ran.values() for tick in ticks))


def _owners(leaders: Sequence[LeaderSeries], ran: Mapping[str, Sequence[PlannedTick]], *, patience: float) -> dict[str, int]:
    """Return which series each identity is of: the one that says most often that it leads when a tick starts."""
    scores = sorted(
        (-score, identity, index)
        for identity, ticks in ran.items()
        for index, one in enumerate(leaders)
        if (score := sum(_says_it_leads(one, tick.started or 0.0, patience=patience) for tick in ticks)) > 0
    )
    owners: dict[str, int] = {}
    holders: dict[int, str] = {}
    for _, identity, index in scores:
        # A pod whose container was started again has a new identity with the same name.
        pod = identity.rpartition("_")[0]
        holder = pod if short_name(pod) != pod else identity
        if identity not in owners and holders.setdefault(index, holder) == holder:
            owners[identity] = index
    return owners


def _says_it_leads(one: LeaderSeries, moment: float, *, patience: float) -> int:
    """Return how many of the scrapes before and after a moment say that it leads: none, one or two."""
    before = [leads for at, leads in one.samples if moment - patience <= at <= moment]
    after = [leads for at, leads in one.samples if moment < at <= moment + patience]
    return int(bool(before) and before[-1]) + int(bool(after) and after[0])


def _name(process: str, identities: Sequence[str]) -> str:
    if process and not _ADDRESS.fullmatch(process):
        return short_name(process)
    if identities:
        pod, _, start = identities[0].rpartition("_")
        return short_name(pod) if short_name(pod) != pod else f"{pod} {start}"
    return process.partition(":")[0]
