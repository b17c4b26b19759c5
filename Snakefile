# Entry point. `snakemake --cores N` builds everything of the preset in config.yaml;
# `--configfile config/smoke.yaml` another preset; a path builds that file alone, of any preset.
from snakemake.utils import min_version

min_version("9.19")


include: "workflow/rules/configuration.smk"


configfile: "config.yaml"


wildcard_constraints:
    preset=r"[a-z0-9][a-z0-9_-]*",
    study=r"[a-z][a-z0-9_]*",
    model=r"[a-z][a-z0-9_]*",
    data=r"[a-z][a-z0-9_]*",
    race=r"[a-z][a-z0-9_]*",
    method=r"[a-z][a-z0-9_]*",
    dimension=r"\d+",
    first=r"\d+",
    last=r"\d+",


include: "workflow/rules/common.smk"
include: "workflow/rules/recovery.smk"
include: "workflow/rules/downloads.smk"
include: "workflow/rules/curvature.smk"
include: "workflow/rules/optimizers.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/figures.smk"


report: "workflow/report/workflow.rst"


onstart:
    check_machine(workflow)
    # The limit of 100 jobs per second wakes the scheduler once a second for every job that has
    # ended, for ever: at the end of a long run a quarter of a core.
    workflow.scheduler.job_rate_limiter = None


onsuccess:
    note_processor_seconds()


onerror:
    note_processor_seconds()


rule all:
    default_target: True
    input:
        f"results/{PRESET}/config.yaml",
        f"results/{PRESET}/claims.csv",
        f"results/{PRESET}/claims.md",
        f"results/{PRESET}/claims.html",
        f"results/{PRESET}/provenance.json",
        products(PRESET),


rule recovery:
    input:
        products(PRESET, "recovery"),


rule curvature:
    input:
        products(PRESET, "curvature"),


rule optimizers:
    input:
        products(PRESET, "optimizers"),
