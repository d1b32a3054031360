"""Reckon how wide words become, so that they can be placed without a browser."""

SANS = "Helvetica, Arial, 'Liberation Sans', sans-serif"

# Of Helvetica's characters, in thousandths of the size; what is not named is as wide as most small letters.
_WIDTHS = {
    **dict.fromkeys("ijl'|", 222),
    **dict.fromkeys(" ft,.:;/!I[]()", 300),
    **dict.fromkeys("-r", 333),
    **dict.fromkeys("ckJsvxyz", 500),
    **dict.fromkeys("ABEKPSVXY", 667),
    **dict.fromkeys("CDGHNORUwQ", 750),
    **dict.fromkeys("mM", 833),
    "W": 944,
    "…": 1000,
}
# Other fonts run wider than Helvetica.
_ROOM = 1.14


def width_of(text: str, *, size: float, is_bold: bool = False) -> float:
    """Return how wide a text becomes, rather too much than too little."""
    return sum(_WIDTHS.get(character, 560) for character in text) / 1000 * size * _ROOM * (1.12 if is_bold else 1)


def shortened(text: str, *, width: float, size: float) -> str:
    """Return a text that fits into a width, its end cut off if it must be."""
    if width_of(text, size=size) <= width:
        return text
    while text and width_of(text + "…", size=size) > width:
        text = text[:-1]
    return text.rstrip(" ,;:") + "…"


def wrapped(text: str, *, width: float, size: float, is_bold: bool = False) -> list[str]:
    """Return a text in lines that fit into a width, broken at spaces."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and width_of(longer, size=size, is_bold=is_bold) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
