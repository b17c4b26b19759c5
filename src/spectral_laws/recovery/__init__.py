"""Sequential feature recovery (arXiv:2605.14567): teachers, spectral estimator, theory, baseline.

Five lines recover a teacher from growing samples::

    from spectral_laws.recovery import Teacher, recover_features

    teacher = Teacher.draw(dimension=200, degree=1, n_directions=6, gamma=0.4, seed=0)
    for recovery in recover_features(teacher, [1_000, 16_000], seed=0):
        print(recovery.sample_size, recovery.cos2, recovery.mse["independent"])
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
