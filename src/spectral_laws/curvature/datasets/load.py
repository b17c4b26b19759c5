"""Any configured data set as :class:`Samples`."""

from spectral_laws.curvature.datasets.images import load_image_files
from spectral_laws.curvature.datasets.language import generate_language
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.datasets.synthetic_images import generate_images
from spectral_laws.curvature.datasets.text import load_text
from spectral_laws.settings.data import Data, ImageFiles, SyntheticImages, SyntheticLanguage


def load_samples(settings: Data, *, seed: int) -> Samples:
    """Load or generate the configured data set.

    Everything random comes from the stream of ``seed``, so that the same settings and seed give
    the same samples on any machine.

    Raises:
        DataError: if a file is missing or damaged, or holds fewer samples than are asked for; the
            message names it and says what to do.
    """
    if isinstance(settings, ImageFiles):
        return load_image_files(settings, seed=seed)
    if isinstance(settings, SyntheticImages):
        return generate_images(settings, seed=seed)
    if isinstance(settings, SyntheticLanguage):
        return generate_language(settings, seed=seed)
    return load_text(settings, seed=seed)
