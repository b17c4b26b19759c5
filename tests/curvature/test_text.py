"""Text at character level."""

from pydoc_data.topics import topics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_laws.curvature.datasets.text import (
    MIN_COUNT,
    UNKNOWN,
    characters,
    encode,
    load_text,
)
from spectral_laws.errors import DataError
from spectral_laws.settings.data import Text


def text(**changes) -> Text:
    values = {"dataset": "text", "context": 20, "train_size": 100, "test_size": 40}
    return Text(**(values | changes))


def spell(tokens: np.ndarray, vocabulary: str) -> str:
    return "".join("\0" if t == UNKNOWN else vocabulary[t - 1] for t in tokens)


def test_windows_are_pieces_of_cpythons_text_each_part_of_its_own():
    whole = "\n".join(topics[name] for name in sorted(topics))
    cut = int(0.9 * len(whole))
    vocabulary = characters(whole[:cut])
    samples = load_text(text(train_size=2000, test_size=400), seed=3)
    assert samples.n_tokens == samples.n_classes == len(vocabulary) + 1
    for piece, inputs, targets in (
        (whole[:cut], samples.train_inputs, samples.train_targets),
        (whole[cut:], samples.test_inputs, samples.test_targets),
    ):
        np.testing.assert_array_equal(inputs[:, 1:], targets[:, :-1])
        known = spell(encode(piece, vocabulary), vocabulary)
        windows = np.concatenate([inputs, targets[:, -1:]], axis=1)
        assert all(spell(window, vocabulary) in known for window in windows)


def test_all_windows_of_a_part_lie_on_one_grid_and_none_is_drawn_twice(tmp_path):
    # Every position is told by its number, written in digits of a fixed width.
    content = "".join(f"{i:05d}" for i in range(4000))
    path = tmp_path / "numbers.txt"
    path.write_text(content)
    samples = load_text(text(file=str(path), context=29, train_size=500, test_size=50), seed=1)
    vocabulary = characters(content[: int(0.9 * len(content))])
    assert vocabulary == "0123456789"
    for inputs, targets, low, high in (
        (samples.train_inputs, samples.train_targets, 0, 18000),
        (samples.test_inputs, samples.test_targets, 18000, 20000),
    ):
        windows = np.concatenate([inputs, targets[:, -1:]], axis=1)
        starts = [content.index(spell(window, vocabulary)) for window in windows]
        assert len(set(starts)) == len(starts)
        assert len({start % 30 for start in starts}) == 1
        assert min(starts) >= low
        assert max(starts) + 30 <= high


def test_rare_characters_share_the_unknown_token_and_the_test_part_adds_none(tmp_path):
    train = "ab" * 900 + "é" * MIN_COUNT + "ü" * (MIN_COUNT - 1)
    path = tmp_path / "text.txt"
    path.write_text(train + "z" * (len(train) // 9), encoding="utf-8")
    settings = text(file=str(path), context=4, train_size=300, test_size=32)
    samples = load_text(settings, seed=1)
    assert samples.n_tokens == 4  # unknown, a, b, é
    assert (samples.test_inputs == UNKNOWN).all()
    assert (samples.train_inputs == UNKNOWN).sum() <= MIN_COUNT - 1
    assert set(np.unique(samples.train_inputs)) >= {1, 2}


@pytest.mark.slow
@given(st.text(max_size=60), st.sets(st.characters(exclude_categories=["Cs"]), max_size=10))
def test_encoding_agrees_with_looking_up_each_character(content, known):
    content = content.encode("utf-8", "ignore").decode()
    vocabulary = "".join(sorted(known))
    places = {character: place for place, character in enumerate(vocabulary, start=1)}
    expected = [places.get(character, UNKNOWN) for character in content]
    np.testing.assert_array_equal(encode(content, vocabulary), np.array(expected, dtype=np.int64))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read .No such file"),
        (b"abc\xff" * 1000, "not UTF-8 .byte 3"),
        (b"", "train_size: 100, but the 0 characters"),
        (b"abcdefghij" * 30, "train_size: 100, but the 270 characters"),
        (b"abcdefghij" * 300, "test_size: 40, but the 300 characters"),
    ],
)
def test_a_file_that_will_not_do_is_named(tmp_path, content, message):
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        load_text(text(file=str(path)), seed=1)
    assert str(path) in str(caught.value)


def test_a_folder_in_the_place_of_the_file_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        load_text(text(file=str(tmp_path)), seed=1)
