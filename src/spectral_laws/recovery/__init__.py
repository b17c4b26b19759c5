"""Sequential feature recovery (arXiv:2605.14567): teachers, spectral estimator, theory, baseline.

Five lines recover a teacher from growing samples::

    from spectral_laws.recovery import Teacher, recover_features

    teacher = Teacher.draw(dimension=40, n_directions=6, gamma=0.4, seed=1)
    for recovery in recover_features(teacher, [10_000, 100_000], seed=1):
        print(recovery.sample_size, recovery.cos2, recovery.mse["independent"])
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
