"""Read the log lines of the demo's processes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_LINE = re.compile(r"(?P<time>\S+Z) (?P<level>debug|info|warning|error|critical) (?P<text>.*)")
_SUBJECT = re.compile(r"(?:\w+=\S+ )*\w+=\S+: ")
_FACT = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a process wrote. `text` is the line without time and level; a line of another form is all text."""

    role: str
    level: str
    event: str
    facts: Mapping[str, str]
    text: str

    def number(self, fact: str) -> int:
        """Return a fact that counts; 0 if the line has none of this name."""
        value = self.facts.get(fact, "0")
        return int(value) if value.isdigit() else 0


def read_line(role: str, line: str) -> LogLine:
    """Take a line of the console form apart."""
    match = _LINE.fullmatch(line)
    if match is None:
        return LogLine(role=role, level="", event="", facts={}, text=line)
    text = match["text"]
    rest = _SUBJECT.sub("", text, count=1)
    facts = {name: value.rstrip(":") for name, value in _FACT.findall(text)}
    return LogLine(role=role, level=match["level"], event=rest.partition(" ")[0], facts=facts, text=text)
