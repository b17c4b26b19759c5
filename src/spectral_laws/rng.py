"""Counter-based random streams, addressed by name and block.

Every stream is a Philox generator. Its key comes from ``numpy.random.SeedSequence(entropy,
spawn_key)``; the block index sits in the highest word of Philox's 256-bit counter, so block b of
a stream is the same numbers whatever was drawn before it, on any number of threads.
"""

import hashlib

import numpy as np

StreamName = str | int


def seed_sequence(seed: int, *path: StreamName) -> np.random.SeedSequence:
    """Seed sequence of the stream called ``path`` under the root ``seed``.

    Args:
        seed: root entropy, a non-negative integer (the ``seed`` of the configuration).
        path: names or non-negative integers, e.g. ``("teacher", 400, 3)``.
    """
    return np.random.SeedSequence(entropy=seed, spawn_key=tuple(_word(name) for name in path))


def generator(seed: int, *path: StreamName) -> np.random.Generator:
    """Philox generator of the stream ``path``; see :func:`seed_sequence`."""
    return np.random.Generator(np.random.Philox(seed_sequence(seed, *path)))


def block_generator(seed: int, *path: StreamName, block: int) -> np.random.Generator:
    """Generator at the start of block ``block`` of the stream ``path``.

    Blocks do not overlap as long as one draws fewer than 2^192 numbers from each.
    """
    key = seed_sequence(seed, *path).generate_state(2, np.uint64)
    counter = np.array([0, 0, 0, block], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def torch_seed(seed: int, *path: StreamName) -> int:
    """A 63-bit seed for ``torch.Generator``, from the stream ``path``."""
    return int(seed_sequence(seed, *path).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _word(name: StreamName) -> int:
    if isinstance(name, str):
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
    if name < 0:
        raise ValueError(f"stream index must be non-negative, got {name}")
    return name
