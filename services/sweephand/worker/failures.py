"""Turn whatever a job raised into text that can be stored."""

import traceback
from types import TracebackType

_ERROR_CHARACTERS = 4_096
_TRACEBACK_CHARACTERS = 65_536
_CUT = "\n… cut …\n"


def error_text(error: BaseException) -> str:
    """Return one exception as `ValueError: no stock`, escaped and bounded; never raises."""
    try:
        message = str(error)
    except Exception as broken:  # noqa: BLE001 - a job's own __str__ may do anything, and its failure must be recorded
        message = f"(its text could not be made: {type(broken).__name__})"
    name = type(error).__qualname__
    return storable(f"{name}: {message}" if message else name, limit=_ERROR_CHARACTERS)


def traceback_text(error: BaseException, *, skip_frames: int = 0) -> str:
    """Return the traceback of an exception, escaped and bounded; never raises.

    The first `skip_frames` frames, the worker's own, are left out.
    """
    where: TracebackType | None = error.__traceback__
    for _ in range(skip_frames):
        where = where.tb_next if where is not None and where.tb_next is not None else where
    try:
        lines = traceback.format_exception(type(error), error, where)
    except Exception as broken:  # noqa: BLE001 - see error_text
        lines = [f"(the traceback could not be made: {type(broken).__name__})"]
    return storable("".join(lines), limit=_TRACEBACK_CHARACTERS)


def storable(text: str, *, limit: int) -> str:
    r"""Return the text with NUL as `\x00` and lone surrogates as `\udc80`, which PostgreSQL refuses.

    Of a text longer than `limit` characters the beginning and, mostly, the end are kept.
    """
    if len(text) > limit:
        head = limit // 4
        text = text[:head] + _CUT + text[-(limit - head - len(_CUT)) :]
    return text.replace("\0", "\\x00").encode("utf-8", errors="backslashreplace").decode("utf-8")
