"""The machine: Python and its packages, cores, memory, bf16, GPU, DeepSpeed, compiler, disk."""

import difflib
import errno
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from gpt1.base.cores import cores
from gpt1.base.errors import ELSEWHERE, UserError
from gpt1.base.files import DATA, LOGS, read_json
from gpt1.base.settings import setting
from gpt1.params.schema import Params
from gpt1.pipeline.code import LOCK
from gpt1.pipeline.doctor.finding import GB, Finding, size, to_do, well
from gpt1.pipeline.settings import INTERNAL, KNOWN

CONSTRAINTS = Path("constraints.txt")
SET_UP = Path(sys.prefix, "setup.done")  # what gpt1/setup.sh installed from, where it did
SHOWN = 4
# the latter where an old pip had setup.py install what comes as source
INFORMATION = (".dist-info", ".egg-info")
LEAST_DISK = 1.0 * GB  # the made-up town's run takes 0.6 GB
PROBE_BYTES = 1 << 20
MAKE_ROOM = (
    "make room: make clean, gpt1 worktrees --remove all, dvc gc --workspace (drops results of other"
    " parameters)"
)


def python() -> list[Finding]:
    """Which Python this is."""
    return well("Python", f"{'.'.join(map(str, sys.version_info[:3]))}, {sys.prefix}")


def packages() -> list[Finding]:
    """Whether what is installed is what constraints.txt names, and nothing that the project asks
    for is absent; in a project folder, which has none, the latter alone.
    """
    if LOCK.is_file():
        return packages_asked_for()
    if not CONSTRAINTS.is_file():
        found = f"no {CONSTRAINTS} in {Path.cwd()}"
        return to_do("packages", found, ELSEWHERE)
    installed = read_installed(sys.path)
    pins = read_pins(CONSTRAINTS.read_text(encoding="utf-8").splitlines())
    absent, other = differences(pins, installed, metadata.requires("gpt1") or [])
    words = [f"{name} {found}, not {pinned}" for name, found, pinned in other]
    words += [f"{name} is absent" for name in absent]
    if words:
        more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
        cure = "make setup installs exactly what constraints.txt names"
        return to_do("packages", "; ".join(words[:SHOWN]) + more, cure)
    asked = (Path("pyproject.toml"), CONSTRAINTS)
    if SET_UP.is_file() and SET_UP.read_bytes() != b"".join(path.read_bytes() for path in asked):
        found = "pyproject.toml or constraints.txt changed since the last set-up"
        return to_do("packages", found, "make setup")
    count = sum(name in installed for name in pins)
    return well("packages", f"{count} as constraints.txt names them")


def packages_asked_for() -> list[Finding]:
    """Whether all is there that the installed package asks for where stages run."""
    asked = metadata.requires("gpt1") or []
    extra = re.compile(r"""; extra == ['"](pipeline|serve)['"]$""")
    needed = [extra.sub("", one) for one in asked if not one.startswith("gpt1[")]
    absent, _ = differences({}, read_installed(sys.path), needed)
    if absent:
        words = [f"{name} is absent" for name in absent]
        more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
        cure = "pip install 'gpt1[pipeline]'"
        return to_do("packages", "; ".join(words[:SHOWN]) + more, cure)
    return well("packages", f"all that gpt1 {metadata.version('gpt1')} asks for")


def read_installed(folders: Iterable[str]) -> dict[str, str]:
    """{package: version} by the names of the folders that installers leave; the first of a name is
    the one that Python takes.
    """
    found: dict[str, str] = {}
    for folder in folders:
        for path in Path(folder or ".").glob("*-*.*-info"):
            if path.suffix in INFORMATION:
                name, version, *_ = path.stem.split("-")  # an egg's has Python's version behind it
                found.setdefault(normal(name), version)
    return found


def normal(name: str) -> str:
    """A package's name as all its spellings have it in common."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pins(lines: Iterable[str]) -> dict[str, str]:
    """{package: version} of lines `name==version`."""
    pairs = (re.match(r"([\w.-]+)==([^\s;#]+)", line) for line in lines)
    return {normal(pair[1]): pair[2] for pair in pairs if pair}


def differences(
    pins: Mapping[str, str], installed: Mapping[str, str], asked: Iterable[str]
) -> tuple[list[str], list[tuple[str, str, str]]]:
    """(packages that are asked for and absent; those of another version, with it and the pinned
    one). `2.13.0+cpu` counts as 2.13.0.
    """
    needed = [normal(re.split(r"[^\w.-]", one)[0]) for one in asked if "extra ==" not in one]
    other = [
        (name, installed[name], pin)
        for name, pin in pins.items()
        if name in installed and installed[name].partition("+")[0] != pin.partition("+")[0]
    ]
    return [name for name in needed if name not in installed], other


def settings() -> list[Finding]:
    """Cores, and whether the GPT1_… settings make sense together."""
    from gpt1.train.launch import read_machine

    try:
        machine, widest = read_machine(), read_machine(over_hosts=True)
    except UserError as error:
        found, _, cure = str(error).rpartition("; ")
        return [*to_do("settings", found, cure), *unknown_settings()]
    where = "on the CPU" if machine.device == "cpu" else "on GPUs"
    processes = f"{machine.processes} {'process' if machine.processes == 1 else 'processes'}"
    words = f"{cores()}; trainings run in {processes} of {machine.threads} threads {where}"
    if widest.hosts > 1:
        words += f"; pre-training in {widest.processes} on {widest.hosts} hosts"
    return [*well("cores", words), *unknown_settings()]


def unknown_settings() -> list[Finding]:
    """Settings of the environment or .env that begin as ours do and that nothing reads."""
    from dotenv import dotenv_values

    places = dict.fromkeys(os.environ, "the environment") | dict.fromkeys(
        dotenv_values(".env"), ".env"
    )
    findings = []
    for name, place in places.items():
        if name.startswith("GPT1_") and name not in KNOWN + INTERNAL:
            near = difflib.get_close_matches(name, KNOWN, 1)
            cure = f"did you mean {near[0]}?" if near else ""
            cure = cure or f"take it out, or name one of {', '.join(KNOWN)}"
            findings += to_do("settings", f"{name} in {place} is nothing that gpt1 knows", cure)
    return findings


def memory() -> list[Finding]:
    """Whether there is room for one training of params.yaml."""
    from psutil import virtual_memory

    from gpt1.params.schema import read_params
    from gpt1.pipeline.slots import lanes_of_cpu, memory_bytes, training_bytes
    from gpt1.train.launch import MICRO_BATCH_TOKENS

    free = min(float(virtual_memory().available), memory_bytes())
    params = read_params()
    measured, most = measured_bytes(params), training_bytes(params, MICRO_BATCH_TOKENS["cpu"])
    takes = f"takes at most {size(most)}, reckoned with caution"
    if measured:
        takes = f"took at most {size(measured)} when it last ran"
    found = f"{size(free)} free of {size(memory_bytes())}, a training on the CPU {takes}"
    if free < (measured or most):
        cure = "end other programs, or set GPT1_MICRO_BATCH in .env to fewer rows"
        return to_do("memory", found, cure)
    return well("memory", f"{found}; {lanes_of_cpu()} side by side")


def measured_bytes(params: Params) -> float:
    """The most memory that a training of params.yaml's sizes has taken in a process here; 0 where
    none has run since they changed.
    """
    from gpt1.params.recipes import pretraining_stage
    from gpt1.pipeline.reasons import changed_since

    if changed_since(pretraining_stage(params, "transformer")):
        return 0.0
    peaks = [0.0]
    for path in LOGS.glob("*/*-speed.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            facts = read_json(path)
            peaks += [float(facts["peak_memory_bytes"])] if facts["device"] == "cpu" else []
    return max(peaks)


def accelerators() -> list[Finding]:
    """GPUs, and whether torch and the driver agree; without one whether the processor multiplies
    bf16 numbers.
    """
    import torch

    from gpt1.base.cores import nvidia_smi
    from gpt1.train.precision import native_bf16

    seen, version = len(nvidia_smi("memory.total")), torch.__version__
    if torch.cuda.is_available() and (usable := torch.cuda.device_count()):
        gpu = well("GPU", f"{usable} × {torch.cuda.get_device_name(0)}, torch {version}")
    elif seen and torch.version.cuda is None:
        gpu = to_do(
            "GPU",
            f"{seen} there, but torch {version} is built for CPUs",
            "rm -rf .venv and make setup without TORCH_INDEX, which takes the CUDA build",
        )
    elif seen:
        gpu = to_do(
            "GPU",
            f"{seen} there, but torch cannot use them (built for CUDA {torch.version.cuda})",
            "update the driver; nvidia-smi says which CUDA it knows; or set GPT1_DEVICE=cpu in"
            " .env",
        )
    else:
        words = "none: everything runs on the CPU; gpt1 plan says how long that takes"
        gpu = well("GPU", words, noted=True)
    emulated = "not known to this processor: emulated, the same numbers at the speed of fp32"
    if native_bf16():
        return [*gpu, *well("bf16", "multiplied by the processor")]
    return [*gpu, *well("bf16", emulated, noted=True)]


def tools() -> list[Finding]:
    """DeepSpeed, and the compiler that torch.compile needs."""
    from gpt1.train.speed import NO_COMPILER, compiler

    hosts, asked = setting("GPT1_HOSTFILE"), setting("GPT1_COMPILE")
    several = hosts or setting("GPT1_PROCESSES") not in (None, "", "1")
    try:
        use = "in use" if several else "for several processes"
        deepspeed = well("DeepSpeed", f"{metadata.version('deepspeed')}, {use}")
    except metadata.PackageNotFoundError:
        deepspeed = to_do("DeepSpeed", "absent", "make setup")
    if hosts and not shutil.which("pdsh"):
        deepspeed = to_do(
            "DeepSpeed",
            "GPT1_HOSTFILE is set, and pdsh, by which other hosts are reached, is absent",
            "install pdsh, or start processes by srun, mpirun or torchrun",
        )
    path, (found, _, cure) = compiler(), NO_COMPILER.partition(": ")
    if path or asked == "0":
        return [*deepspeed, *well("compiler", path or "none, and GPT1_COMPILE=0 asks none")]
    if asked == "1":
        return [*deepspeed, *to_do("compiler", f"GPT1_COMPILE=1 is set, but {found}", cure)]
    return [*deepspeed, *well("compiler", NO_COMPILER, noted=True)]


def disk() -> list[Finding]:
    """Room for data, DVC's cache and temporary files, and whether they can be written."""
    places = {
        "data": DATA,
        "DVC's cache": Path(".dvc"),
        "temporary files": Path(tempfile.gettempdir()),
    }
    places = {name: path for name, path in places.items() if path.is_dir()}
    devices: dict[int, list[str]] = {}
    findings, planned = list[Finding](), planned_bytes()
    for name, path in places.items():
        if problem := unwritable(path):
            findings += to_do("disk", f"{path} ({name}) {problem[0]}", problem[1])
        devices.setdefault(path.stat().st_dev, []).append(name)
    for names in [] if findings else devices.values():
        free = shutil.disk_usage(places[names[0]]).free
        least = max(LEAST_DISK, planned) if "data" in names else LEAST_DISK / 4
        found = f"{size(free)} free for {' and '.join(names)}"
        if free < least:
            by = " by the plan" if least == planned else ""
            findings += to_do("disk", f"{found}; {size(least)} are wanted{by}", MAKE_ROOM)
        elif "data" in names:
            findings += well("disk", found)
    return findings


def unwritable(folder: Path) -> tuple[str, str] | None:
    """Why nothing can be written into a folder, and what to do; None where it can."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return "has no room left", MAKE_ROOM
        return (
            f"cannot be written ({error.strerror})",
            "clone into a folder where you may write, or make this one yours",
        )
    return None


def planned_bytes() -> float:
    """Disk that the last `gpt1 plan` of params.yaml expects a run to take; 0 for no plan."""
    try:
        stages = read_json(LOGS / "plan.json")["stages"]
        return float(sum(stage["disk_bytes"] for stage in stages.values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0.0
