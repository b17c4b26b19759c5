"""Wrong configuration stops before any job, with a message that names the key."""

import pytest

from spectral_laws.config import load_config
from spectral_laws.errors import ConfigError

MISTAKES = [
    ("gamma: 0.4", "gama: 0.4", "recovery.studies.quadratic.gama: unknown key"),
    ("gamma: 0.4", "gamma: -0.4", "recovery.studies.quadratic.gamma: "),
    (
        "dimensions: [25, 36, 49, 64]",
        "dimensions: []",
        "recovery.studies.quadratic.dimensions: ",
    ),
    ("width_exponent: 0.5", "width_exponent: 2.5", "there are only D = "),
    ("top_k: 20", "top_k: 0", "curvature.measurement.top_k: "),
    ("seeds: 5 # independent", "seeds: 3.5 #", "curvature.seeds: "),
    ("model: resnet18 #", "model: resnet19 #", "optimizers.races.images.model: 'resnet19' is"),
    ("train_size: 500 #", "train_size: 5000 #", "optimizers.races.images: train_size 5000 and"),
    ("samples: 500 #", "samples: 501 #", "samples is above the race's train_size"),
    ("tuning_seeds: 2 #", "tuning_seeds: 0 #", "optimizers.races.images.tuning_seeds: "),
    ("alpha: 1.0 #", "alpha: steep #", "optimizers.methods.spectral_newton_1.alpha"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_wrong_configuration_names_the_key(root, tmp_path, old, new, message):
    text = (root / "config.yaml").read_text()
    assert old in text
    (tmp_path / "config.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "config.yaml")
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 5


# One mistake of each paper: the way from the message to the terminal is the same for all.
@pytest.mark.parametrize(("old", "new", "message"), [MISTAKES[0], MISTAKES[4], MISTAKES[6]])
def test_wrong_configuration_starts_nothing(project, old, new, message):
    path = project.folder / "config.yaml"
    path.write_text(path.read_text().replace(old, new, 1))
    output = project.snakemake(check=False)
    assert message in output
    assert "Traceback" not in output
    assert len(output.strip().splitlines()) <= 8
    assert not (project.folder / "results").exists()


def test_an_unknown_preset_or_study_lists_what_there_is(project):
    output = project.snakemake("figures/nosuch/recovery_mse.pdf", "--dry-run", check=False)
    assert "'nosuch' is not a preset; there are fashion_mnist, laptop, paper, smoke" in output
    assert "most recent call" not in output
    output = project.snakemake(
        "results/laptop/recovery/cubic/d24/seeds0-4/metrics.parquet", "--dry-run", check=False
    )
    assert "'cubic'" in output
    assert "quadratic" in output
    assert "most recent call" not in output


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("texts/sgd/race", "preset laptop has no race 'texts'; there are images, text"),
        ("images/lion/tuning", "preset laptop has no method 'lion'; there are sgd, adamw, muon, "),
        ("texts/layer_rates", "preset laptop has no race 'texts'; there are images, text"),
    ],
)
def test_an_unknown_race_or_method_lists_what_there_is(project, path, message):
    table = f"results/laptop/optimizers/{path}.parquet"
    output = project.snakemake(table, "--dry-run", check=False)
    assert message in output
    assert "most recent call" not in output


def test_a_missing_data_folder_is_named_and_nothing_is_written(project):
    path = project.folder / "config.yaml"
    text = path.read_text().replace("dataset: digits", "dataset: fashion_mnist")
    path.write_text(text.replace("folder: null", "folder: /no/such/folder"))
    output = project.snakemake("results/laptop/curvature/data/images.safetensors", check=False)
    assert "/no/such/folder" in output
    assert "most recent call" not in output
    assert not list((project.folder / "results").rglob("*.safetensors"))
