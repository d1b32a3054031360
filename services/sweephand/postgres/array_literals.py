"""Write arrays of numbers, UUIDs and words as PostgreSQL reads them.

psycopg's own dumper of lists looks at every item in Python, which costs more than the rest of a batched statement.
"""

from collections.abc import Iterable


def array_literal(items: Iterable[object]) -> str:
    """Return `{1,2,3}`, to be bound as a parameter with a cast to the array's type.

    Only for items whose text needs no quotes: numbers, UUIDs, words of our own; not None.
    """
    return "{" + ",".join(map(str, items)) + "}"


def names_literal(names: Iterable[str]) -> str:
    """Return `{"publish_product","null"}`, as `array_literal`: for kinds, which could be words that arrays give a meaning.

    Only for names without quotes and backslashes.
    """
    return "{" + ",".join([f'"{name}"' for name in names]) + "}"
