# Data sets with published SHA-256 sums, downloaded into data/ where nothing else provides them.
# The rule exists for files that are not there yet. Those that are there are plain inputs: no run
# asks the network for them again.
import re

import requests
from spectral_laws.curvature.datasets.downloads import advice, archives_of, missing_downloads

DOWNLOADS = {str(download.path): download for download in missing_downloads()}


@cache
def check_answers(download):
    """Stop with advice if there is no such file at the address, or no network."""
    try:
        status = requests.head(download.url, allow_redirects=True, timeout=30).status_code
        reason = None if status == 200 else f"HTTP status {status}"
    except requests.RequestException as error:
        reason = f"{type(error).__name__}; no network?"
    if reason:
        raise WorkflowError(advice(download, reason))


def remote_file(wildcards):
    """The file at its address; whatever runs no job (as a dry run) does without the network."""
    if workflow.executor_plugin is None or workflow.dryrun or workflow.touch:
        return []
    download = DOWNLOADS[f"data/{wildcards.download}"]
    check_answers(download)
    return storage.http(download.url)


if DOWNLOADS:

    localrules:
        verify_download,

    rule verify_download:
        input:
            source=sources("verify_download.py"),
            download=remote_file,
        output:
            "data/{download}",
        log:
            "logs/downloads/{download}.log",
        wildcard_constraints:
            download="|".join(re.escape(path.removeprefix("data/")) for path in DOWNLOADS),
        resources:
            mem_mb=500,
            runtime=120,
        params:
            size=lambda wildcards: DOWNLOADS[f"data/{wildcards.download}"].size,
            sha256=lambda wildcards: DOWNLOADS[f"data/{wildcards.download}"].sha256,
        shell:
            "{PYTHON} {SCRIPTS}/verify_download.py --download {input.download:q}"
            " --size {params.size} --sha256 {params.sha256} --output {output} > {log} 2>&1"
