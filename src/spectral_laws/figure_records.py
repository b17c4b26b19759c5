"""Provenance inside PDF and PNG files, where it changes nothing of what is seen.

A PNG holds it as a text chunk before its last one, a PDF as a comment before its last three lines.
The record's ``content`` is the SHA-256 of the file without it, so that a figure that was edited, or
damaged, is told from one that was drawn.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spectral_laws.errors import DataError
from spectral_laws.provenance import KEY, seal, unseal

_PNG = b"\x89PNG\r\n\x1a\n"
_IEND = b"\x00\x00\x00\x00IEND\xaeB`\x82"
_CHUNK = b"tEXt" + KEY.encode() + b"\x00"
_COMMENT = b"%" + KEY.encode() + b" "
_STARTXREF = b"startxref\n"


def put_record(drawn: bytes, facts: Mapping[str, Any]) -> bytes:
    """A PDF or PNG with its provenance inside."""
    record = seal({**facts, "content": hashlib.sha256(drawn).hexdigest()})
    text = json.dumps(record).encode("ascii")
    if drawn.startswith(_PNG):
        chunk = _CHUNK + text
        whole = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
        return drawn.removesuffix(_IEND) + whole + _IEND
    place = drawn.rindex(_STARTXREF)
    return drawn[:place] + _COMMENT + text + b"\n" + drawn[place:]


def read_figure_record(path: Path) -> dict[str, Any]:
    """The provenance inside a PDF or PNG file.

    Raises:
        DataError: if the file is missing, has none, or is not what was drawn.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: no such figure") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    drawn, text = _take_png(content) if content.startswith(_PNG) else _take_pdf(content)
    try:
        record = unseal(json.loads(text), path)
    except (ValueError, TypeError, AttributeError):
        record = None
    if record is None:
        raise DataError(
            f"{path}: no provenance inside: drawn by an older version or another program"
        )
    if record.get("content") != hashlib.sha256(drawn).hexdigest():
        raise DataError(f"{path}: damaged or edited, it is not what was drawn")
    return record


def _take_png(content: bytes) -> tuple[bytes, bytes]:
    """The file as it was drawn, and the record."""
    place = content.rfind(_CHUNK)
    if place < 4:
        return content, b""
    (length,) = struct.unpack(">I", content[place - 4 : place])
    end = place + 4 + length
    return content[: place - 4] + content[end + 4 :], content[place + len(_CHUNK) : end]


def _take_pdf(content: bytes) -> tuple[bytes, bytes]:
    place = content.rfind(b"\n" + _COMMENT) + 1
    end = content.find(b"\n", place)
    if place == 0 or end < 0:
        return content, b""
    return content[:place] + content[end + 1 :], content[place + len(_COMMENT) : end]
