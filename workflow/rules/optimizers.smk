# The race between optimizers: tuning, trainings, learning rates per layer, update spectra.
RUN = "{race}/{method}"


def race_of(wildcards):
    """Settings of the race that the path names."""
    races = preset_config(wildcards.preset).optimizers.races
    if wildcards.race not in races:
        raise WorkflowError(
            f"preset {wildcards.preset} has no race {wildcards.race!r}; there are {', '.join(races)}"
        )
    return races[wildcards.race]


def racing_model(wildcards):
    """The JSON of the network of a race, without what is only measured."""
    model = preset_config(wildcards.preset).curvature.models[race_of(wildcards).model]
    return model.model_dump_json(exclude={"batch_size", "checkpoints", "top_k"})


def racing_data(wildcards):
    """The prepared data set of the network of a race."""
    model = preset_config(wildcards.preset).curvature.models[race_of(wildcards).model]
    return f"{RESULTS}/curvature/data/{model.data}.safetensors".format(preset=wildcards.preset)


def measured_exponents(wildcards):
    """The exponents, for a method that takes each layer's alpha from them."""
    methods = preset_config(wildcards.preset).optimizers.methods
    if wildcards.method not in methods:
        raise WorkflowError(
            f"preset {wildcards.preset} has no method {wildcards.method!r}; "
            f"there are {', '.join(methods)}"
        )
    measured = methods[wildcards.method].alpha == "measured"
    return [f"results/{wildcards.preset}/curvature/exponents.parquet"] if measured else []


def rated_method(wildcards):
    """Name of the method that is trained with learning rates per layer."""
    return preset_config(wildcards.preset).optimizers.layer_rates.method


def all_runs(wildcards):
    """A table of every method in every race."""
    optimizers = preset_config(wildcards.preset).optimizers
    return [
        f"results/{wildcards.preset}/optimizers/{race}/{method}/{wildcards.table}.parquet"
        for race in optimizers.races
        for method in optimizers.methods
    ]


rule tune_method:
    input:
        source=sources("tune_method.py"),
        data=racing_data,
        exponents=measured_exponents,
    output:
        table=f"{RESULTS}/optimizers/{RUN}/tuning.parquet",
        times=f"{RESULTS}/optimizers/{RUN}/tuning_times.parquet",
    log:
        f"{LOGS}/tune_method/{RUN}.log",
    benchmark:
        f"{BENCHMARKS}/tune_method/{RUN}.tsv"
    threads: 1
    resources:
        mem_mb=3000,
        runtime=2880,
        gpu=gpus,
    params:
        training=lambda wildcards: race_of(wildcards).training.model_dump_json(),
        seeds=lambda wildcards: race_of(wildcards).tuning_seeds,
        model_name=lambda wildcards: race_of(wildcards).model,
        model=racing_model,
        method=settings("optimizers.methods.{method}"),
        exponents=lambda wildcards, input: " ".join(f"--exponents {e}" for e in input.exponents),
        seed=settings("seed"),
        device=settings("device"),
    shell:
        "{PYTHON} {SCRIPTS}/tune_method.py --race-name {wildcards.race}"
        " --method-name {wildcards.method} --model-name {params.model_name}"
        " --training {params.training:q} --method {params.method:q} --model {params.model:q}"
        " --data-file {input.data} {params.exponents} --seeds {params.seeds}"
        " --seed {params.seed} --device {params.device} --scratch scratch --output {output.table}"
        " --times {output.times} > {log} 2>&1"


rule train_method:
    input:
        source=sources("train_method.py"),
        data=racing_data,
        exponents=measured_exponents,
        tuning=f"{RESULTS}/optimizers/{RUN}/tuning.parquet",
    output:
        table=f"{RESULTS}/optimizers/{RUN}/race.parquet",
        times=f"{RESULTS}/optimizers/{RUN}/race_times.parquet",
    log:
        f"{LOGS}/train_method/{RUN}.log",
    benchmark:
        f"{BENCHMARKS}/train_method/{RUN}.tsv"
    threads: 1
    resources:
        mem_mb=3000,
        runtime=2880,
        gpu=gpus,
    params:
        training=lambda wildcards: race_of(wildcards).training.model_dump_json(),
        seeds=lambda wildcards: race_of(wildcards).seeds,
        model_name=lambda wildcards: race_of(wildcards).model,
        model=racing_model,
        method=settings("optimizers.methods.{method}"),
        exponents=lambda wildcards, input: " ".join(f"--exponents {e}" for e in input.exponents),
        seed=settings("seed"),
        device=settings("device"),
    shell:
        "{PYTHON} {SCRIPTS}/train_method.py --race-name {wildcards.race}"
        " --method-name {wildcards.method} --model-name {params.model_name}"
        " --training {params.training:q} --method {params.method:q} --model {params.model:q}"
        " --data-file {input.data} {params.exponents} --tuning {input.tuning}"
        " --seeds {params.seeds} --seed {params.seed} --device {params.device}"
        " --scratch scratch --output {output.table} --times {output.times} > {log} 2>&1"


rule collect_race:
    input:
        source=sources("collect_tables.py"),
        tables=all_runs,
    output:
        reported_table("optimizers/{table}"),
    log:
        f"{LOGS}/collect_race/{{table}}.log",
    benchmark:
        f"{BENCHMARKS}/collect_race/{{table}}.tsv"
    wildcard_constraints:
        table="tuning|tuning_times|race|race_times",
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/collect_tables.py --schema optimizers/{wildcards.table} --output {output}"
        " {input.tables} > {log} 2>&1"


rule train_layer_rates:
    input:
        source=sources("train_layer_rates.py"),
        data=racing_data,
        exponents=f"{RESULTS}/curvature/exponents.parquet",
        history=lambda wildcards: (
            f"results/{wildcards.preset}/optimizers/{wildcards.race}/"
            f"{rated_method(wildcards)}/race.parquet"
        ),
    output:
        f"{RESULTS}/optimizers/{{race}}/layer_rates.parquet",
    log:
        f"{LOGS}/train_layer_rates/{{race}}.log",
    benchmark:
        f"{BENCHMARKS}/train_layer_rates/{{race}}.tsv"
    threads: 1
    resources:
        mem_mb=3000,
        runtime=2880,
        gpu=gpus,
    params:
        training=lambda wildcards: race_of(wildcards).training.model_dump_json(),
        seeds=lambda wildcards: race_of(wildcards).seeds,
        model_name=lambda wildcards: race_of(wildcards).model,
        model=racing_model,
        method=lambda wildcards: (
            preset_config(wildcards.preset)
            .optimizers.methods[rated_method(wildcards)]
            .model_dump_json()
        ),
        layer_rates=settings("optimizers.layer_rates", without=("races",)),
        seed=settings("seed"),
        device=settings("device"),
    shell:
        "{PYTHON} {SCRIPTS}/train_layer_rates.py --race-name {wildcards.race}"
        " --model-name {params.model_name} --training {params.training:q}"
        " --method {params.method:q} --layer-rates {params.layer_rates:q}"
        " --model {params.model:q} --data-file {input.data} --history {input.history}"
        " --exponents {input.exponents} --seeds {params.seeds} --seed {params.seed}"
        " --device {params.device} --scratch scratch --output {output} > {log} 2>&1"


rule collect_layer_rates:
    input:
        source=sources("collect_tables.py"),
        tables=lambda wildcards: [
            f"results/{wildcards.preset}/optimizers/{race}/layer_rates.parquet"
            for race in preset_config(wildcards.preset).optimizers.layer_rates.races
        ],
    output:
        reported_table("optimizers/layer_rates"),
    log:
        f"{LOGS}/collect_layer_rates.log",
    benchmark:
        f"{BENCHMARKS}/collect_layer_rates.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/collect_tables.py --schema optimizers/layer_rates --output {output}"
        " {input.tables} > {log} 2>&1"


def responding_race(wildcards):
    """Name of the race whose network gives the gradient."""
    return preset_config(wildcards.preset).optimizers.responses.race


def in_responding_race(function):
    """Input or params function of a race, for the race of the responses."""

    def apply(wildcards):
        named = {"preset": wildcards.preset, "race": responding_race(wildcards)}
        return function(Namespace(**named))

    return apply


rule measure_responses:
    input:
        source=sources("measure_responses.py"),
        data=in_responding_race(racing_data),
        exponents=f"{RESULTS}/curvature/exponents.parquet",
    output:
        reported_table("optimizers/responses"),
    log:
        f"{LOGS}/measure_responses.log",
    benchmark:
        f"{BENCHMARKS}/measure_responses.tsv"
    resources:
        mem_mb=2000,
        runtime=60,
        gpu=gpus,
    params:
        race=responding_race,
        training=in_responding_race(lambda wildcards: race_of(wildcards).training.model_dump_json()),
        model_name=in_responding_race(lambda wildcards: race_of(wildcards).model),
        model=in_responding_race(racing_model),
        responses=settings("optimizers", without=("races", "layer_rates")),
        seed=settings("seed"),
        device=settings("device"),
    shell:
        "{PYTHON} {SCRIPTS}/measure_responses.py --race-name {params.race}"
        " --model-name {params.model_name} --training {params.training:q}"
        " --responses {params.responses:q} --model {params.model:q}"
        " --data-file {input.data} --exponents {input.exponents} --seed {params.seed}"
        " --device {params.device} --output {output} > {log} 2>&1"
