"""Text at character level, cut into windows."""

from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spectral_laws import rng
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.errors import DataError
from spectral_laws.settings.data import Text

MIN_COUNT = 10
"""Rarer characters of the training part share the unknown token."""

UNKNOWN = 0
"""Token of every character that is not in the vocabulary."""

_TRAIN_SHARE = 0.9


def load_text(settings: Text, *, seed: int) -> Samples:
    """Windows of a text as samples of language modelling: the target is the next character.

    The first 90 % of the characters are the training part, the rest the test part. The vocabulary
    is the unknown token 0, then, by code point, the characters that occur at least ``MIN_COUNT``
    times in the training part. Each part is cut, from a random offset on, into windows of
    ``context`` + 1 characters that do not overlap; the samples are windows drawn at random without
    replacement. ``file`` null is the text of ``pydoc_data.topics``, which every CPython has (it
    differs between its versions).
    """
    source = settings.file or "pydoc_data.topics"
    text = _cpython_text() if settings.file is None else _read(Path(settings.file))
    cut = int(_TRAIN_SHARE * len(text))
    vocabulary = characters(text[:cut])
    parts = {}
    for part, piece, wanted in (
        ("train", text[:cut], settings.train_size),
        ("test", text[cut:], settings.test_size),
    ):
        tokens = encode(piece, vocabulary)
        length = settings.context + 1
        offset = int(rng.generator(seed, "text", part, "offset").integers(length))
        n_windows = max(0, len(tokens) - offset) // length
        if wanted > n_windows:
            raise DataError(
                f"{part}_size: {wanted}, but the {len(tokens)} characters that {source} has for it "
                f"hold {n_windows} windows of context + 1 = {length}"
            )
        windows = tokens[offset : offset + n_windows * length].reshape(n_windows, length)
        chosen = rng.generator(seed, "text", part).choice(n_windows, wanted, replace=False)
        parts[part] = windows[chosen]
    n_tokens = len(vocabulary) + 1
    return Samples(
        train_inputs=np.ascontiguousarray(parts["train"][:, :-1]),
        train_targets=np.ascontiguousarray(parts["train"][:, 1:]),
        test_inputs=np.ascontiguousarray(parts["test"][:, :-1]),
        test_targets=np.ascontiguousarray(parts["test"][:, 1:]),
        n_classes=n_tokens,
        n_tokens=n_tokens,
    )


def characters(text: str) -> str:
    """The characters that occur at least ``MIN_COUNT`` times, by code point."""
    return "".join(sorted(c for c, count in Counter(text).items() if count >= MIN_COUNT))


def encode(text: str, vocabulary: str) -> NDArray[np.int64]:
    """Token of every character: 1 + its place in ``vocabulary`` (sorted), else ``UNKNOWN``."""
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    known = np.frombuffer(vocabulary.encode("utf-32-le"), dtype=np.uint32)
    if not len(known):
        return np.full(len(codes), UNKNOWN, dtype=np.int64)
    places = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.where(known[places] == codes, places + 1, UNKNOWN).astype(np.int64)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); put a text there, or set file to null"
        ) from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: not UTF-8 (byte {error.start}: {error.reason}); convert it first"
        ) from None


def _cpython_text() -> str:
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))
