"""Python imports this at start when its folder is on PYTHONPATH: it plants faults in scripts.

FAULTS is a JSON list of faults; each meets one script before its `count`-th rename of a file whose
final name begins with `target`. `wait`: it stands still as long as the file `mark` exists. `die`:
half of the file has been written when the process is killed. `late`: others see the file under its
final name only after so many seconds, as on a network file system.
"""

import json
import os
import signal
import subprocess
import sys
import time


def plant(fault):
    """Put a fault into os.replace, which every writer of the project ends with."""
    rename, left = os.replace, fault["count"]

    def replace(source, target, **options):
        nonlocal left
        left -= os.path.basename(target).startswith(fault["target"])
        if left == 0 and fault["act"] == "die":
            os.truncate(source, os.path.getsize(source) // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        if left == 0 and fault["act"] == "late":
            rename(source, f"{source}.late")
            command = f"sleep {fault['seconds']}; mv '{source}.late' '{target}'"
            subprocess.Popen(["sh", "-c", command], start_new_session=True)
            return
        if left == 0:
            left = -1
            with open(fault["mark"] + ".new", "w") as file:
                file.write(str(os.getpid()))
            rename(fault["mark"] + ".new", fault["mark"])
            while os.path.exists(fault["mark"]):
                time.sleep(0.02)
        rename(source, target, **options)

    os.replace = replace


for planned in json.loads(os.environ.get("FAULTS", "[]")):
    if planned["script"] in [os.path.basename(word) for word in sys.orig_argv[1:2]]:
        plant(planned)
