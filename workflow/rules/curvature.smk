# Loss curvature along gradient singular directions: data, training, measurement, exponents.
NETWORKS = "{model}/seeds{first}-{last}"


def model_of(wildcards):
    """Settings of the model that the path names."""
    models = preset_config(wildcards.preset).curvature.models
    if wildcards.model not in models:
        raise WorkflowError(
            f"preset {wildcards.preset} has no model {wildcards.model!r}; there are {', '.join(models)}"
        )
    return models[wildcards.model]


def data_of(wildcards):
    """The prepared data set that the model names."""
    return f"results/{wildcards.preset}/curvature/data/{model_of(wildcards).data}.safetensors"


def archives_of_data(wildcards):
    """The file of a text, or the downloaded files that a data set is read from, if there are."""
    sets = preset_config(wildcards.preset).curvature.data
    if wildcards.data not in sets:
        raise WorkflowError(
            f"preset {wildcards.preset} has no data {wildcards.data!r}; there are {', '.join(sets)}"
        )
    chosen = sets[wildcards.data]
    # An edited text is another data set; the job says what to do where the file is absent.
    text = getattr(chosen, "file", None)
    return [text] if text is not None and Path(text).exists() else archives_of(chosen)


def training_of(wildcards):
    """The JSON of the training that the model names."""
    trainings = preset_config(wildcards.preset).curvature.training
    return trainings[model_of(wildcards).training].model_dump_json()


def smoothing_of(wildcards):
    """Label smoothing of the loss that the model was trained on."""
    trainings = preset_config(wildcards.preset).curvature.training
    return trainings[model_of(wildcards).training].label_smoothing


def weights_of(wildcards):
    """The file of weights that a model was given; the job says what to do where it is absent."""
    weights = model_of(wildcards).weights
    return [weights] if weights is not None and Path(weights).exists() else []


def halves_of(wildcards):
    """The option that measures two halves of the batch, for models that claims rest on."""
    curvature = preset_config(wildcards.preset).curvature
    main = curvature.experiments["architectures"].models
    return "--halves" if wildcards.model in main else "--no-halves"


def batches_of_networks(preset, model):
    """Folders of the trainings of a model, `curvature.batch` of them in each."""
    curvature = preset_config(preset).curvature
    seeds = curvature.replicates(model)
    starts = range(0, seeds, curvature.batch)
    return [
        f"results/{preset}/curvature/{model}/seeds{first}-{min(first + curvature.batch, seeds) - 1}"
        for first in starts
    ]


def all_networks(name):
    """Input function: the file `name` of every batch of trainings of the preset."""
    return lambda wildcards: [
        f"{folder}/{name.format(**wildcards)}"
        for model in preset_config(wildcards.preset).curvature.models
        for folder in batches_of_networks(wildcards.preset, model)
    ]


def controlled_networks(wildcards):
    """A table of controls, of every batch that holds trainings with controls."""
    curvature = preset_config(wildcards.preset).curvature
    needed = -(-curvature.controls.replicates // curvature.batch)
    return [
        f"{folder}/{wildcards.table}.parquet"
        for model in curvature.controls.models
        for folder in batches_of_networks(wildcards.preset, model)[:needed]
    ]


rule prepare_data:
    input:
        source=sources("prepare_data.py"),
        archives=archives_of_data,
    output:
        f"{RESULTS}/curvature/data/{{data}}.safetensors",
    log:
        f"{LOGS}/prepare_data/{{data}}.log",
    benchmark:
        f"{BENCHMARKS}/prepare_data/{{data}}.tsv"
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        data=settings("curvature.data.{data}"),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/prepare_data.py --data {params.data:q} --seed {params.seed}"
        " --output {output} > {log} 2>&1"


rule train_model:
    input:
        source=sources("train_model.py"),
        data=data_of,
        weights=weights_of,
    output:
        checkpoints=f"{RESULTS}/curvature/{NETWORKS}/checkpoints.safetensors",
        history=f"{RESULTS}/curvature/{NETWORKS}/history.parquet",
    log:
        f"{LOGS}/train_model/{NETWORKS}.log",
    benchmark:
        f"{BENCHMARKS}/train_model/{NETWORKS}.tsv"
    threads: 1
    resources:
        mem_mb=3000,
        runtime=1440,
        gpu=gpus,
    params:
        model=settings("curvature.models.{model}", without=("batch_size", "top_k")),
        training=training_of,
        seed=settings("seed"),
        device=settings("device"),
    shell:
        "{PYTHON} {SCRIPTS}/train_model.py --model-name {wildcards.model}"
        " --model {params.model:q} --training {params.training:q} --data-file {input.data}"
        " --first {wildcards.first} --last {wildcards.last} --seed {params.seed}"
        " --device {params.device} --scratch scratch --checkpoints {output.checkpoints}"
        " --history {output.history} > {log} 2>&1"


rule measure_curvature:
    input:
        source=sources("measure_curvature.py"),
        data=data_of,
        checkpoints=f"{RESULTS}/curvature/{NETWORKS}/checkpoints.safetensors",
    output:
        spectra=f"{RESULTS}/curvature/{NETWORKS}/spectra.parquet",
        factors=f"{RESULTS}/curvature/{NETWORKS}/factors.parquet",
    log:
        f"{LOGS}/measure_curvature/{NETWORKS}.log",
    benchmark:
        f"{BENCHMARKS}/measure_curvature/{NETWORKS}.tsv"
    threads: 1
    resources:
        mem_mb=3500,
        runtime=720,
        gpu=gpus,
    params:
        model=settings("curvature.models.{model}"),
        measurement=settings("curvature.measurement"),
        smoothing=smoothing_of,
        halves=halves_of,
        seed=settings("seed"),
        device=settings("device"),
    shell:
        "{PYTHON} {SCRIPTS}/measure_curvature.py --model-name {wildcards.model}"
        " --model {params.model:q} --measurement {params.measurement:q}"
        " --label-smoothing {params.smoothing} {params.halves} --data-file {input.data}"
        " --checkpoints {input.checkpoints} --seed {params.seed} --device {params.device}"
        " --spectra {output.spectra} --factors {output.factors} > {log} 2>&1"


rule measure_controls:
    input:
        source=sources("measure_controls.py"),
        data=data_of,
        checkpoints=f"{RESULTS}/curvature/{NETWORKS}/checkpoints.safetensors",
    output:
        eigenvalues=f"{RESULTS}/curvature/{NETWORKS}/eigenvalues.parquet",
        differences=f"{RESULTS}/curvature/{NETWORKS}/finite_differences.parquet",
    log:
        f"{LOGS}/measure_controls/{NETWORKS}.log",
    benchmark:
        f"{BENCHMARKS}/measure_controls/{NETWORKS}.tsv"
    threads: 1
    resources:
        mem_mb=3500,
        runtime=720,
        gpu=gpus,
    params:
        model=settings("curvature.models.{model}"),
        measurement=settings("curvature.measurement"),
        controls=settings("curvature.controls", without=("models",)),
        smoothing=smoothing_of,
        seed=settings("seed"),
        device=settings("device"),
    shell:
        "{PYTHON} {SCRIPTS}/measure_controls.py --model-name {wildcards.model}"
        " --model {params.model:q} --measurement {params.measurement:q}"
        " --controls {params.controls:q} --label-smoothing {params.smoothing}"
        " --data-file {input.data} --checkpoints {input.checkpoints} --seed {params.seed}"
        " --device {params.device} --eigenvalues {output.eigenvalues}"
        " --differences {output.differences} > {log} 2>&1"


rule collect_curvature:
    input:
        source=sources("collect_tables.py"),
        tables=all_networks("{table}.parquet"),
    output:
        reported_table("curvature/{table}"),
    log:
        f"{LOGS}/collect_curvature/{{table}}.log",
    benchmark:
        f"{BENCHMARKS}/collect_curvature/{{table}}.tsv"
    wildcard_constraints:
        table="spectra|history|factors",
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/collect_tables.py --schema curvature/{wildcards.table} --output {output}"
        " {input.tables} > {log} 2>&1"


rule collect_controls:
    input:
        source=sources("collect_tables.py"),
        tables=controlled_networks,
    output:
        reported_table("curvature/{table}"),
    log:
        f"{LOGS}/collect_controls/{{table}}.log",
    benchmark:
        f"{BENCHMARKS}/collect_controls/{{table}}.tsv"
    wildcard_constraints:
        table="eigenvalues|finite_differences",
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/collect_tables.py --schema curvature/{wildcards.table} --output {output}"
        " {input.tables} > {log} 2>&1"


rule fit_exponents:
    input:
        source=sources("fit_exponents.py"),
        spectra=f"{RESULTS}/curvature/spectra.parquet",
    output:
        reported_table("curvature/exponents"),
    log:
        f"{LOGS}/fit_exponents.log",
    benchmark:
        f"{BENCHMARKS}/fit_exponents.tsv"
    resources:
        mem_mb=1500,
        runtime=60,
    params:
        top_k=settings("curvature.measurement.top_k"),
        intervals=settings("intervals"),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/fit_exponents.py --spectra {input.spectra} --top-k {params.top_k}"
        " --intervals {params.intervals:q} --seed {params.seed} --output {output} > {log} 2>&1"


rule fit_ladder:
    input:
        source=sources("fit_ladder.py"),
        spectra=f"{RESULTS}/curvature/spectra.parquet",
        factors=f"{RESULTS}/curvature/factors.parquet",
    output:
        ladder=reported_table("curvature/ladder"),
        decomposition=reported_table("curvature/decomposition"),
        factor_models=reported_table("curvature/factor_models"),
    log:
        f"{LOGS}/fit_ladder.log",
    benchmark:
        f"{BENCHMARKS}/fit_ladder.tsv"
    resources:
        mem_mb=1500,
        runtime=60,
    params:
        top_k=settings("curvature.measurement.top_k"),
        intervals=settings("intervals"),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/fit_ladder.py --spectra {input.spectra} --factors {input.factors}"
        " --top-k {params.top_k} --intervals {params.intervals:q} --seed {params.seed}"
        " --ladder {output.ladder} --decomposition {output.decomposition}"
        " --factor-models {output.factor_models} > {log} 2>&1"


rule fit_independence:
    input:
        source=sources("fit_independence.py"),
        spectra=f"{RESULTS}/curvature/spectra.parquet",
    output:
        reported_table("curvature/independence"),
    log:
        f"{LOGS}/fit_independence.log",
    benchmark:
        f"{BENCHMARKS}/fit_independence.tsv"
    resources:
        mem_mb=1500,
        runtime=60,
    params:
        top_k=settings("curvature.measurement.top_k"),
        permutations=settings("intervals.resamples"),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/fit_independence.py --spectra {input.spectra} --top-k {params.top_k}"
        " --permutations {params.permutations} --seed {params.seed} --output {output} > {log} 2>&1"


rule fit_windows:
    input:
        source=sources("fit_windows.py"),
        spectra=f"{RESULTS}/curvature/spectra.parquet",
    output:
        reported_table("curvature/windows"),
    log:
        f"{LOGS}/fit_windows.log",
    benchmark:
        f"{BENCHMARKS}/fit_windows.tsv"
    resources:
        mem_mb=1500,
        runtime=60,
    params:
        top_k=settings("curvature.measurement.top_k"),
        intervals=settings("intervals"),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/fit_windows.py --spectra {input.spectra} --top-k {params.top_k}"
        " --intervals {params.intervals:q} --seed {params.seed} --output {output} > {log} 2>&1"


rule fit_weight_tails:
    input:
        source=sources("fit_weight_tails.py"),
        networks=all_networks("checkpoints.safetensors"),
        spectra=f"{RESULTS}/curvature/spectra.parquet",
    output:
        reported_table("curvature/weights"),
    log:
        f"{LOGS}/fit_weight_tails.log",
    benchmark:
        f"{BENCHMARKS}/fit_weight_tails.tsv"
    resources:
        mem_mb=3000,
        runtime=120,
    params:
        networks=lambda wildcards, input: " ".join(
            f"--networks {path} --model-name {path.split('/')[-3]}" for path in input.networks
        ),
    shell:
        "{PYTHON} {SCRIPTS}/fit_weight_tails.py {params.networks} --spectra {input.spectra}"
        " --output {output} > {log} 2>&1"


rule compare_models:
    input:
        source=sources("compare_models.py"),
        exponents=f"{RESULTS}/curvature/exponents.parquet",
        decomposition=f"{RESULTS}/curvature/decomposition.parquet",
    output:
        reported_table("curvature/experiments"),
    log:
        f"{LOGS}/compare_models.log",
    benchmark:
        f"{BENCHMARKS}/compare_models.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        comparison=lambda wildcards: preset_config(wildcards.preset).curvature.model_dump_json(
            include={"experiments", "models", "data"}
        ),
    shell:
        "{PYTHON} {SCRIPTS}/compare_models.py --comparison {params.comparison:q}"
        " --exponents {input.exponents} --decomposition {input.decomposition} --output {output}"
        " > {log} 2>&1"


def reference_files(wildcards):
    """The author's result files, where the configuration says that they lie."""
    folder = preset_config(wildcards.preset).curvature.reference
    if folder is None:
        raise WorkflowError("curvature.reference is null: there is nothing to audit")
    return sorted(str(path) for path in Path(folder).glob("*.json"))


rule audit_reference:
    input:
        source=sources("audit_reference.py"),
        files=reference_files,
        claims=f"{RESULTS}/claims.csv",
        experiments=f"{RESULTS}/curvature/experiments.parquet",
    output:
        table=reported_table("curvature/audit"),
        markdown=f"{RESULTS}/audit.md",
    log:
        f"{LOGS}/audit_reference.log",
    benchmark:
        f"{BENCHMARKS}/audit_reference.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        folder=settings("curvature.reference"),
        intervals=settings("intervals"),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/audit_reference.py --folder {params.folder:q} --claims {input.claims}"
        " --experiments {input.experiments} --intervals {params.intervals:q} --seed {params.seed}"
        " --output {output.table} --markdown {output.markdown} > {log} 2>&1"
