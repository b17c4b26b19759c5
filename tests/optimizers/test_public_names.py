"""The room's public names, loaded lazily."""

import spectral_laws.optimizers as optimizers


def test_every_public_name_is_there():
    assert {"SpectralNewton", "parameter_groups", "Task", "tune_method"} <= {*optimizers.__all__}
    for name in optimizers.__all__:
        assert getattr(optimizers, name) is not None
        assert name in dir(optimizers)
