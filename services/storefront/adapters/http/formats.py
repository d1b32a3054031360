"""The forms that all routes share: bodies are JSON, and numbers have 64 bits."""

from typing import Annotated

from fastapi import Header, HTTPException, status
from pydantic import Field

MAX_ID = 2**63 - 1

Int64 = Field(json_schema_extra={"format": "int64"})


def require_json(content_type: Annotated[str, Header()] = "") -> None:
    """Refuse a body of another media type, which FastAPI would call a wrong value."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(
            status.HTTP_415_UNSUPPORTED_MEDIA_TYPE, f"the Content-Type is {content_type!r}; send application/json"
        )
