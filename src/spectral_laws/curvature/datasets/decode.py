"""Strict decoding of JPEG and PNG images."""

import io
import warnings

import numpy as np
from numpy.typing import NDArray

from spectral_laws.errors import DataError

MAX_BYTES = 64 << 20
"""Larger encoded images are refused: the data sets here have none above 16 MiB."""


def decode_image(content: bytes, *, name: str) -> NDArray[np.uint8]:
    """Decode a JPEG or PNG to RGB, (3, H, W) unsigned bytes; grey becomes three equal channels.

    ``name`` is what messages call it.
    """
    from PIL import Image  # of the extra `vision`: all else here is to be had without it

    if len(content) > MAX_BYTES:
        raise DataError(f"{name}: more than {MAX_BYTES} bytes, no image of a data set is so large")
    try:
        with warnings.catch_warnings():
            # A header that announces an enormous image must not be decoded.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as image:
                pixels = np.asarray(image.convert("RGB"), dtype=np.uint8)
    # Damaged content makes Pillow raise any of these; it has no common base for them.
    except (
        OSError,
        SyntaxError,
        ValueError,
        TypeError,
        IndexError,
        KeyError,
        EOFError,
        OverflowError,
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,
    ) as error:
        raise DataError(f"{name}: not a readable JPEG or PNG image ({error})") from error
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))
