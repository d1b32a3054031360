"""What any text that the shop is told must be, whatever it says."""

from storefront.domain.errors import InvalidFieldError


def check_text(field: str, text: str) -> None:
    """Refuse what is a Python string but no Unicode text that a database or another program can read.

    Raises:
        InvalidFieldError: the text of `field` has a NUL character or half of a surrogate pair.
    """
    if "\0" in text:
        raise InvalidFieldError(field, "must not contain a NUL character")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidFieldError(field, "must not contain half of a surrogate pair")
