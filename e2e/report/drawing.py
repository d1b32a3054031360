"""Draw SVG: shapes and words on a card of its own colour, which reads alike on GitHub's light and dark pages."""

from xml.etree import ElementTree as ET

from e2e.report.text import SANS

INK, MUTED, GRID, CARD, FRAME = "#1f2328", "#59636e", "#e4e8ec", "#ffffff", "#d0d7de"


class Drawing:
    """Be a picture that is being drawn. What is drawn later lies on top."""

    def __init__(self, *, width: float) -> None:
        """Begin a picture of a width, in pixels; its height is told at the end."""
        self._width = width
        self._root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img"})
        self._title = ET.SubElement(self._root, "title")
        self._card = ET.SubElement(self._root, "rect")
        self._group = ET.SubElement(self._root, "g", {"font-family": SANS})

    def rectangle(self, x: float, y: float, width: float, height: float, **attributes: str | float | None) -> ET.Element:
        """Draw a rectangle; returns it, to add a tip to."""
        return self._add("rect", x=x, y=y, width=width, height=height, **attributes)

    def line(self, x1: float, y1: float, x2: float, y2: float, **attributes: str | float | None) -> ET.Element:
        """Draw a line."""
        return self._add("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)

    def circle(self, x: float, y: float, radius: float, **attributes: str | float | None) -> ET.Element:
        """Draw a circle."""
        return self._add("circle", cx=x, cy=y, r=radius, **attributes)

    def path(self, d: str, **attributes: str | float | None) -> ET.Element:
        """Draw a path."""
        return self._add("path", d=d, **attributes)

    def words(self, x: float, y: float, text: str, *, size: float = 11, **attributes: str | float | None) -> ET.Element:
        """Write a line of text, its baseline at y."""
        element = self._add("text", x=x, y=y, font_size=size, **{"fill": INK, **attributes})
        element.text = text
        return element

    def to_text(self, *, height: float, title: str) -> str:
        """Return the whole picture."""
        size = {"width": number(self._width), "height": number(height)}
        self._root.attrib.update({**size, "viewBox": f"0 0 {size['width']} {size['height']}"})
        self._title.text = title
        card: dict[str, str | float] = {
            "x": 0.5,
            "y": 0.5,
            "width": self._width - 1,
            "height": height - 1,
            "rx": 8,
            "fill": CARD,
            "stroke": FRAME,
        }
        self._card.attrib.update({name: number(value) for name, value in card.items()})
        ET.indent(self._root, space=" ")
        return ET.tostring(self._root, encoding="unicode") + "\n"

    def _add(self, tag: str, **attributes: str | float | None) -> ET.Element:
        given = {name.rstrip("_").replace("_", "-"): number(value) for name, value in attributes.items() if value is not None}
        return ET.SubElement(self._group, tag, given)


def tip(element: ET.Element, text: str) -> None:
    """Say what a shape is to who points at it, and to who cannot see it."""
    ET.SubElement(element, "title").text = text


def number(value: str | float) -> str:
    """Return a coordinate to a tenth of a pixel; words as they are."""
    return value if isinstance(value, str) else f"{round(value, 1):g}"
