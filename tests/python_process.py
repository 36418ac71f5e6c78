"""Run Python code in a process of its own, as of a machine without torch where a test asks for one."""

import os
import subprocess
import sys
from pathlib import Path

WITHOUT_TORCH = """
import importlib.util, sys

class WithoutTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *parent: None if name == "torch" else find_spec(name, *parent)
sys.meta_path.insert(0, WithoutTorch())
"""


def run_python(code, *, cwd=None, torch=True, **environment):
    """What the code prints; it can import the modules of tests, and must end without an error."""
    places = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))} | environment
    words = [sys.executable, "-c", code if torch else WITHOUT_TORCH + code]
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
