"""Walk through YAML and JSON that nobody has typed."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a document, and where it stands in it."""

    value: object
    path: str = ""

    def __getitem__(self, key: str | int) -> "Node":
        """Return the value below; a missing one is an error that tells the path."""
        if isinstance(self.value, dict) and key in self.value:
            return Node(self.value[key], f"{self.path}.{key}")
        if isinstance(self.value, list) and isinstance(key, int):
            return Node(self.value[key], f"{self.path}[{key}]")
        raise KeyError(f"{self.path} has no {key!r}: {self.value!r:.200}")

    def get(self, key: str) -> "Node":
        """Return the value below, or a node of None."""
        return self[key] if isinstance(self.value, dict) and key in self.value else Node(None, f"{self.path}.{key}")

    def at(self, dotted_path: str) -> "Node":
        """Return the value some steps below, or a node of None: `spec.template.spec`."""
        found = self
        for key in dotted_path.split(".") if dotted_path else []:
            found = found.get(key)
        return found

    def __iter__(self) -> Iterator["Node"]:
        """Return the items of a list; None has none."""
        items = self.value if isinstance(self.value, list) else []
        return (Node(item, f"{self.path}[{index}]") for index, item in enumerate(items))

    def entries(self) -> Iterator[tuple[str, "Node"]]:
        """Return the entries of a mapping; None has none."""
        mapping = self.value if isinstance(self.value, dict) else {}
        return ((str(key), Node(child, f"{self.path}.{key}")) for key, child in mapping.items())

    def walk(self) -> Iterator["Node"]:
        """Return this value and all below it."""
        yield self
        for _, child in self.entries():
            yield from child.walk()
        for item in self:
            yield from item.walk()

    @property
    def text(self) -> str:
        """Return the value, which must be text."""
        if not isinstance(self.value, str):
            raise TypeError(f"{self.path} is not text: {self.value!r:.200}")
        return self.value

    @property
    def texts(self) -> dict[str, str]:
        """Return a mapping of text to text."""
        return {key: child.text for key, child in self.entries()}
