"""Import this before torch, in a process of its own: a CPU build of torch then believes that it has a
GPU, enough for fake tensors. Needs a C++ compiler; raises RuntimeError without.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

if "torch" in sys.modules:
    raise RuntimeError("torch was imported before no_gpu: it has looked for a GPU already")
compiler, torch = shutil.which(os.environ.get("CXX", "g++")), find_spec("torch")
if compiler is None or torch is None or torch.origin is None:
    raise RuntimeError(
        "no C++ compiler, or no torch: install g++ (Debian, Ubuntu: apt install g++)"
    )
home, source = Path(torch.origin).parent, Path(__file__).with_suffix(".cpp")
with tempfile.TemporaryDirectory() as folder:
    flags = ["-shared", "-fPIC", "-std=c++20", f"-I{home}/include", f"-L{home}/lib"]
    library = f"{folder}/no_gpu.so"
    command = [compiler, *flags, str(source), "-o", library, "-lc10", "-ltorch_cpu"]
    subprocess.run(command, check=True)
    ctypes.CDLL(str(home / "lib" / "libtorch_cpu.so"))
    ctypes.CDLL(library)
