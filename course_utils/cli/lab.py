"""Opens JupyterLab on the first lesson."""

import os
import subprocess
import sys
from pathlib import Path

from course_utils.environment import ROOT

FIRST_LESSON = "notebooks/00_start_here.ipynb"
SETTINGS = Path(__file__).with_name("lab_settings")


def lab_command(options: list[str]) -> list[str]:
    """The command line that starts JupyterLab for this copy of the course.

    The server's root is the folder of the course, so that lessons can show pictures from figures/.
    The settings switch off the question about news and the look-up of newer versions, which need a
    network, and show pages such as the glossary as they are read, not as they are written; the
    learner's own settings stay where they are and count more. `lab_contents` lets lessons open
    unchanged.
    """
    command = [sys.executable, "-m", "jupyterlab"]
    command += [f"--ServerApp.root_dir={ROOT}", f"--LabApp.default_url=/lab/tree/{FIRST_LESSON}"]
    command += [f"--LabApp.app_settings_dir={SETTINGS}"]
    contents = "course_utils.cli.lab_contents.LessonContents"
    command += [f"--ServerApp.contents_manager_class={contents}"]
    command += ["--LabApp.news_url=None"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in options:
        print("You are root, whom JupyterLab refuses by default: adding --allow-root.", flush=True)
        command.append("--allow-root")
    return command + options


HELP = """Opens JupyterLab on the first lesson; Ctrl-C ends it. Options go on to JupyterLab.

example: python -m course_utils lab --no-browser --port 8899

What JupyterLab says of its options:
"""


def main(argv: list[str]) -> int:
    """Start JupyterLab with the given extra options and stay until it ends."""
    if {"-h", "--help"} & set(argv):
        print(HELP, flush=True)
    if not (ROOT / FIRST_LESSON).exists():
        print(f"lab: {ROOT / FIRST_LESSON} is missing; is this a whole copy of the course?")
        return 1
    command = lab_command(argv)
    if os.name == "nt":
        return subprocess.run(command).returncode
    os.execv(command[0], command)
