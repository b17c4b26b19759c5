import pytest


@pytest.fixture
def project(make_project, tmp_path):
    return make_project(tmp_path)
