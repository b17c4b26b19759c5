import pytest
import torch

from spectral_laws.device import find_device
from spectral_laws.errors import ConfigError


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_an_absent_device_says_what_to_change():
    with pytest.raises(ConfigError, match="set `device: cpu`"):
        find_device("cuda")


def test_a_known_device_is_found_and_another_is_refused():
    assert find_device("cpu").type == "cpu"
    with pytest.raises(ConfigError, match="found 'tpu'"):
        find_device("tpu")
