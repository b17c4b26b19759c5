"""The package's public names, loaded lazily."""

import spectral_laws.recovery as recovery
from spectral_laws.recovery import Teacher, recover_equivalent, recover_features


def test_every_public_name_is_there():
    assert {"Teacher", "recover_features", "recover_equivalent", "LabelLaw", "predict"} <= set(
        recovery.__all__
    )
    for name in recovery.__all__:
        assert getattr(recovery, name) is not None
        assert name in dir(recovery)


def test_five_lines_recover_a_teacher():
    teacher = Teacher.draw(dimension=30, degree=1, n_directions=3, gamma=0.4, seed=1)
    first, last = recover_features(teacher, [50, 20_000], seed=1)
    assert first.cos2.mean() < 0.5 < 0.95 < last.cos2.mean()
    assert last.mse["independent"] < 0.1 < first.mse["independent"]


def test_five_lines_recover_the_gaussian_equivalent():
    first, last = recover_equivalent([0.8, -0.6], [500, 100_000], feature_dimension=2000)
    assert first.cos2.mean() < 0.5 < 0.9 < last.cos2.mean()
    assert last.mse["independent"] < 0.2 < first.mse["independent"]
