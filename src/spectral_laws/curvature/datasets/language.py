"""A synthetic language: Markov chains whose common stationary law is Zipf's."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_laws import rng
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.datasets.synthetic_images import balanced_labels
from spectral_laws.settings.data import SyntheticLanguage

RESTART = 0.1
"""Probability of a token that does not depend on the one before it."""

_STREAM = "synthetic_language"
_MIN_PIECES = 64
_CHUNK = 4096  # sequences at a time


@dataclass(frozen=True)
class MarkovChains:
    """Chains over tokens 0..V-1 that all have the stationary law p_r proportional to (r+1)^-z.

    Token r owns the interval I_r of length p_r of the unit interval, in order. Chain c cuts the
    unit interval into m equal pieces, m = max(V, 64), and moves piece j to the place of piece
    order_c(j), a random permutation: a map T_c that keeps lengths. After token r comes, with
    probability ``RESTART``, a token drawn from p; else the token whose interval holds T_c(x), x
    uniform in I_r. Hence

        P_c(r -> s) = RESTART p_s + (1 - RESTART) |T_c(I_r) & I_s| / p_r,

    whose rows are sparse up to the first term: a frequent token has many successors, a rare one
    few. Because T_c keeps lengths, p is exactly stationary for every chain; chains differ in which
    token follows which, not in how often tokens occur.
    """

    cumulative: NDArray[np.float64]  # upper ends of the intervals, (V,), the last is 1
    orders: NDArray[np.int64]  # order_c of every chain, (n_chains, m)

    @classmethod
    def draw(cls, vocabulary: int, exponent: float, n_chains: int, *, seed: int) -> "MarkovChains":
        """The chains of ``seed``; a chain does not depend on how many there are."""
        weights = np.arange(1, vocabulary + 1, dtype=np.float64) ** -exponent
        cumulative = np.cumsum(weights) / weights.sum()
        cumulative[-1] = 1.0
        n_pieces = max(vocabulary, _MIN_PIECES)
        orders = [
            rng.generator(seed, _STREAM, "chain", chain).permutation(n_pieces)
            for chain in range(n_chains)
        ]
        return cls(cumulative, np.stack(orders).astype(np.int64))

    def probabilities(self) -> NDArray[np.float64]:
        """The stationary law p, (V,)."""
        return np.diff(self.cumulative, prepend=0.0)

    def transitions(self, chain: int) -> NDArray[np.float64]:
        """The matrix P_c, (V, V); rows sum to 1. Meant for small vocabularies."""
        n_pieces = self.orders.shape[1]
        order = self.orders[[chain]]
        # Cut wherever a token, a piece, or the token of the place moved to changes: between
        # neighbouring cuts both tokens are fixed.
        cuts = np.concatenate([[0.0], self.cumulative, np.arange(n_pieces) / n_pieces])
        cuts = np.unique(np.concatenate([cuts, _move(cuts, np.argsort(order))]))
        middles = (cuts[1:] + cuts[:-1]) / 2
        p = self.probabilities()
        flow = np.zeros((len(p), len(p)))
        pairs = (self.token_at(middles), self.token_at(_move(middles, order)))
        np.add.at(flow, pairs, np.diff(cuts))
        rows: NDArray[np.float64] = RESTART * p + (1 - RESTART) * flow / p[:, None]
        return rows

    def token_at(self, positions: NDArray[np.float64]) -> NDArray[np.int64]:
        """The tokens whose intervals hold the positions, which lie in [0, 1)."""
        tokens = np.searchsorted(self.cumulative, positions, side="right")
        return np.minimum(tokens, len(self.cumulative) - 1).astype(np.int64)

    def sequences(
        self, chains: NDArray[np.int64], length: int, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        """One stationary sequence per entry of ``chains``, (N, length), from 2 length uniforms."""
        uniforms = generator.random((len(chains), length, 2))
        p = self.probabilities()
        starts = self.cumulative - p
        tokens = np.empty((len(chains), length), dtype=np.int64)
        tokens[:, 0] = self.token_at(uniforms[:, 0, 0])
        for t in range(1, length):
            last = tokens[:, t - 1]
            inside = starts[last] + p[last] * uniforms[:, t, 0]
            moved = _move(inside, self.orders, chains)
            choice = uniforms[:, t, 1]
            restart = choice < RESTART
            # Below RESTART, choice / RESTART is itself uniform.
            tokens[:, t] = self.token_at(np.where(restart, choice / RESTART, moved))
        return tokens


def generate_language(settings: SyntheticLanguage, *, seed: int) -> Samples:
    """Draw sequences of several Markov chains, see :class:`MarkovChains`.

    Every sample is ``context`` tokens of one chain, chains taking turns in random order. The
    target of language modelling is the token after each; of classification, which chain it was.
    Tokens are the same for both tasks, and a part's first sequences do not depend on how many
    follow.
    """
    chains = MarkovChains.draw(
        settings.vocabulary, settings.zipf_exponent, settings.n_chains, seed=seed
    )
    train_tokens, train_labels = _part(settings, chains, settings.train_size, seed, "train")
    test_tokens, test_labels = _part(settings, chains, settings.test_size, seed, "test")
    modelling = settings.task == "language_modelling"
    return Samples(
        train_inputs=np.ascontiguousarray(train_tokens[:, :-1]),
        train_targets=np.ascontiguousarray(train_tokens[:, 1:]) if modelling else train_labels,
        test_inputs=np.ascontiguousarray(test_tokens[:, :-1]),
        test_targets=np.ascontiguousarray(test_tokens[:, 1:]) if modelling else test_labels,
        n_classes=settings.vocabulary if modelling else settings.n_chains,
        n_tokens=settings.vocabulary,
    )


def _part(
    settings: SyntheticLanguage, chains: MarkovChains, n: int, seed: int, part: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens (n, context + 1) and the chain of each sequence."""
    labels = balanced_labels(rng.generator(seed, _STREAM, part, "labels"), n, settings.n_chains)
    generator = rng.generator(seed, _STREAM, part, "tokens")
    length = settings.context + 1
    pieces = [
        chains.sequences(labels[start : start + _CHUNK], length, generator)
        for start in range(0, n, _CHUNK)
    ]
    return np.concatenate(pieces), labels


def _move(
    positions: NDArray[np.float64], orders: NDArray[np.int64], rows: NDArray[np.int64] | int = 0
) -> NDArray[np.float64]:
    """T of every position: piece j of the unit interval goes to the place of orders[row, j]."""
    n_pieces = orders.shape[1]
    scaled = positions * n_pieces
    piece = np.minimum(scaled.astype(np.int64), n_pieces - 1)
    moved: NDArray[np.float64] = (orders[rows, piece] + (scaled - piece)) / n_pieces
    return moved
