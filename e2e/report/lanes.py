"""Draw who led: a lane for each dispatcher, from its first scrape to its last."""

from itertools import pairwise
from statistics import median
from xml.etree.ElementTree import Element

from e2e.report.axis import Axis
from e2e.report.drawing import CARD, GRID, MUTED, Drawing, tip
from e2e.report.lead import Lane, Lead, Leadership
from e2e.report.legend import Entry
from e2e.report.spans import Span, without
from e2e.report.text import shortened, width_of

_LANE = 22
_BAR = 14
_HEAD = 17
_LEAD, _MAYBE, _ALIVE, _NOBODY = "#3a53c5", "#b9c4f3", "#9aa4af", "#c62f3d"
_NOBODY_GROUND = "#f9e3e5"
# A scrape or two may be missing at the end of a case.
_SCRAPES_TO_BE_GONE = 3


def lanes_height(led: Leadership) -> float:
    """Return how high the lanes become."""
    return len(led.lanes) * _LANE + (_HEAD if led.nobody else 0)


def draw_lanes(drawing: Drawing, led: Leadership, *, axis: Axis, top: float, ends_at: float) -> None:
    """Draw the lanes."""
    _draw_nobody(drawing, led, axis=axis, top=top)
    y = top + (_HEAD if led.nobody else 0) + _LANE / 2
    for lane in led.lanes:
        drawing.words(axis.left - 10, y + 4, shortened(_name(lane), width=axis.left - 24, size=11), text_anchor="end")
        _draw_lane(drawing, lane, axis=axis, y=y, ends_at=ends_at, scrape=led.scrape_seconds)
        y += _LANE


def lanes_legend(led: Leadership, *, view: Span, ends_at: float) -> list[Entry]:
    """Return what the legend says of the lanes."""
    if not led.lanes:
        return []
    entries = [Entry("leads (dots: ticks that it ran)", _LEAD, _BAR)]
    if any(_unsure(lane, view=view, ends_at=ends_at) for lane in led.lanes):
        entries.append(Entry("between two scrapes: may lead", _MAYBE, _BAR))
    if any(_stands_by(lane, view=view) for lane in led.lanes):
        entries.append(Entry("stands by", _ALIVE, 2))
    if any(_ends(lane, view=view, ends_at=ends_at, scrape=led.scrape_seconds) for lane in led.lanes):
        entries.append(Entry("answers no scrape", CARD, _BAR, mark="×", ink=MUTED))
    if led.nobody:
        entries.append(Entry("nobody leads", _NOBODY_GROUND, _BAR))
    return entries


def _draw_nobody(drawing: Drawing, led: Leadership, *, axis: Axis, top: float) -> None:
    taken = axis.left
    for span in led.nobody:
        x, width = axis.x(span.start), axis.x(span.end) - axis.x(span.start)
        shape = drawing.rectangle(x, top, width, lanes_height(led), fill=_NOBODY_GROUND, class_="nobody")
        words = f"nobody leads, about {span.seconds:.0f} s"
        tip(shape, f"from {span.start:.1f} s to {span.end:.1f} s, as the scrapes and ticks show it: {words}")
        words_width = width_of(words, size=11, is_bold=True)
        # In the middle, or from the beginning on where it is too narrow: what was done stands there, and its line.
        start = min(x + max((width - words_width) / 2, 3), axis.right - words_width)
        if start >= taken and span.seconds > 2 * led.scrape_seconds:
            drawing.words(start, top + 12, words, fill=_NOBODY, font_weight="bold", class_="nobody-label")
            taken = start + words_width + 6


def _draw_lane(drawing: Drawing, lane: Lane, *, axis: Axis, y: float, ends_at: float, scrape: float) -> None:
    drawing.line(axis.left, y, axis.right, y, stroke=GRID)
    for span in (part for part in lane.alive if part.meets(axis.view)):
        x = axis.x(span.start)
        # A process that was scraped but once is seen, too.
        drawing.line(x, y, max(axis.x(span.end), x + 4), y, stroke=_ALIVE, stroke_width=2.5, class_="alive")
    for span in _unsure(lane, view=axis.view, ends_at=ends_at):
        _draw_bar(drawing, span, axis=axis, y=y, fill=_MAYBE)
    for lead in (one for one in lane.leads if one.span.meets(axis.view)):
        _draw_lead(drawing, lead, name=lane.name, axis=axis, y=y)
    for moment in _ends(lane, view=axis.view, ends_at=ends_at, scrape=scrape):
        _draw_end(drawing, x=axis.x(moment), y=y)
    places = [axis.x(moment) for moment in lane.runs if axis.view.holds(moment)]
    distance = median(right - left for left, right in pairwise(places)) if len(places) > 1 else 10
    for x in places:
        drawing.circle(x, y, min(2.4, max(0.28 * distance, 1)), fill=CARD, class_="run")


def _stands_by(lane: Lane, *, view: Span) -> bool:
    may_lead = [*(lead.span for lead in lane.leads), *lane.unsure]
    return any(span.meets(view) for span in without(lane.alive, may_lead))


def _unsure(lane: Lane, *, view: Span, ends_at: float) -> list[Span]:
    """Return when it may have led; not after the last scrape of the case, where nothing is left to tell."""
    return [span for span in lane.unsure if span.meets(view) and span.end < ends_at]


def _ends(lane: Lane, *, view: Span, ends_at: float, scrape: float) -> list[float]:
    """Return when it fell silent: at its last scrape, or when it can no longer have led."""
    last = ends_at - _SCRAPES_TO_BE_GONE * scrape
    silences = [span.end for span in lane.alive if lane.is_scraped and view.start <= span.end < last]
    return [max([span.end for span in lane.unsure if span.holds(moment)], default=moment) for moment in silences]


def _name(lane: Lane) -> str:
    return f"{lane.name}, {terms_in_words(lane.terms)}" if lane.terms else lane.name


def terms_in_words(terms: tuple[int, ...]) -> str:
    """Return terms as words, the first and the last of several."""
    return f"term {terms[0]}" if len(terms) == 1 else f"terms {terms[0]} to {terms[-1]}"


def _draw_lead(drawing: Drawing, lead: Lead, *, name: str, axis: Axis, y: float) -> None:
    shape = _draw_bar(drawing, lead.span, axis=axis, y=y, fill=_LEAD)
    words = terms_in_words(lead.terms) if lead.terms else ""
    tip(shape, f"{name} leads from {lead.span.start:.1f} s to {lead.span.end:.1f} s {words}".strip())


def _draw_bar(drawing: Drawing, span: Span, *, axis: Axis, y: float, fill: str) -> Element:
    x = axis.x(span.start)
    return drawing.rectangle(x, y - _BAR / 2, max(axis.x(span.end) - x, 1.5), _BAR, fill=fill)


def _draw_end(drawing: Drawing, *, x: float, y: float) -> None:
    shape = drawing.path(f"M{x + 2:.1f} {y - 4:.1f}l8 8m0 -8l-8 8", stroke=MUTED, stroke_width=1.8, class_="gone")
    tip(shape, "answers no scrape from here on")
