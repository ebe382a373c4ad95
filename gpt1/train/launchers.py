"""What launchers tell the processes that they start, in torch's variables: torchrun, DeepSpeed,
mpirun, Slurm's srun; and hostfiles.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from gpt1.base.errors import UserError

FIRST_PORT, PORTS = (
    20000,
    20000,
)  # where processes meet that a scheduler has started: the job's number decides


def torch_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_WORLD_SIZE (hosts), MASTER_ADDR,
    MASTER_PORT where a launcher is, or nothing.

    Where one launcher has started another, the inner one's hold. Raises UserError where some are
    missing or make no sense.
    """
    of_torch = "RANK" in environment or "WORLD_SIZE" in environment
    of_open_mpi = "OMPI_COMM_WORLD_SIZE" in environment
    read = _of_torch if of_torch else _of_open_mpi if of_open_mpi else _of_slurm
    if found := read(environment):
        rank, processes, _ = (_number(found, name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
        for name in ("LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE"):
            if _number(found, name) == 0:
                raise UserError(
                    f"{name}: expected a number above 0, found 0; start the processes by one"
                    " launcher"
                )
        if rank >= processes:
            raise UserError(
                f"RANK: expected a number below WORLD_SIZE, {processes}, found {rank}; start the"
                " processes by one launcher"
            )
    return found


def _of_torch(environment: Mapping[str, str]) -> dict[str, str]:
    processes = _number(environment, "WORLD_SIZE")
    for name in ("LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT") if processes > 1 else ():
        _value(environment, name)
    local = environment.get("LOCAL_WORLD_SIZE") or environment.get("LOCAL_SIZE") or str(processes)
    hosts = environment.get("GROUP_WORLD_SIZE") or environment.get("CROSS_SIZE") or "1"
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    return {
        "LOCAL_RANK": environment.get("LOCAL_RANK", "0"),
        "LOCAL_WORLD_SIZE": local,
        "GROUP_WORLD_SIZE": hosts,
        **{name: environment[name] for name in names if name in environment},
    }


def _of_open_mpi(environment: Mapping[str, str]) -> dict[str, str]:
    names = {
        "RANK": "OMPI_COMM_WORLD_RANK",
        "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
        "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
        "LOCAL_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
    }
    found = {name: str(_number(environment, theirs)) for name, theirs in names.items()}
    hosts = -(-int(found["WORLD_SIZE"]) // max(1, int(found["LOCAL_WORLD_SIZE"])))
    addresses = {"MASTER_ADDR": "127.0.0.1", **environment} if hosts == 1 else environment
    return found | {
        "GROUP_WORLD_SIZE": str(hosts),
        "MASTER_ADDR": _value(addresses, "MASTER_ADDR"),
        "MASTER_PORT": environment.get("MASTER_PORT", str(FIRST_PORT)),
    }


def _of_slurm(environment: Mapping[str, str]) -> dict[str, str]:
    """Only of tasks that srun has started: a batch script sees the job's SLURM_NTASKS and
    SLURM_PROCID=0 too, and is alone.
    """
    if environment.get("SLURM_STEP_NUM_TASKS", "1") == "1":
        return {}
    tasks = tasks_by_node(_value(environment, "SLURM_STEP_TASKS_PER_NODE"))
    node = _number(environment, "SLURM_NODEID")
    if node >= len(tasks):
        raise UserError(
            f"SLURM_NODEID: expected one of the {len(tasks)} nodes of SLURM_STEP_TASKS_PER_NODE,"
            f" found {node}; start by srun"
        )
    port = FIRST_PORT + _number(environment, "SLURM_JOB_ID") % PORTS
    return {
        "RANK": str(_number(environment, "SLURM_PROCID")),
        "WORLD_SIZE": str(_number(environment, "SLURM_STEP_NUM_TASKS")),
        "LOCAL_RANK": str(_number(environment, "SLURM_LOCALID")),
        "LOCAL_WORLD_SIZE": str(tasks[node]),
        "GROUP_WORLD_SIZE": str(len(tasks)),
        "MASTER_ADDR": (
            environment.get("MASTER_ADDR") or first_host(_value(environment, "SLURM_STEP_NODELIST"))
        ),
        "MASTER_PORT": environment.get("MASTER_PORT", str(port)),
    }


def first_host(nodes: str) -> str:
    """The first of Slurm's list of nodes: gpu003 of "gpu[003-006,010],login1"."""
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])+", nodes)
    return re.sub(r"\[([^,\]-]+)[^\]]*\]", r"\1", first.group()) if first else nodes


def tasks_by_node(text: str) -> list[int]:
    """Tasks of each node, of Slurm's "2(x3),1". Raises UserError."""
    tasks: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if not found:
            raise UserError(
                f'SLURM_STEP_TASKS_PER_NODE: expected numbers as in "2(x3),1", found {text!r};'
                " start by srun"
            )
        tasks += [int(found[1])] * int(found[2] or 1)
    return tasks


def read_hostfile(path: Path) -> dict[str, int]:
    """Processes by host, of lines `host slots=N` as DeepSpeed and Open MPI have them; # begins a
    comment. Raises UserError.
    """
    if not path.is_file():
        raise UserError(
            f"GPT1_HOSTFILE: expected a file with lines as `host slots=8`, found no {path}; write"
            " it, or unset the variable"
        )
    hosts: dict[str, int] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path} cannot be read ({error}); expected text with lines as `host slots=8`"
        ) from None
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        found = re.fullmatch(r"(\S+)\s+slots=(\d+)", text)
        if text and (not found or int(found[2]) == 0 or found[1] in hosts):
            raise UserError(
                f"{path}, line {number}: expected `host slots=N`, each host once, N above 0, found"
                f" {line!r}; correct the line"
            )
        if found:
            hosts[found[1]] = int(found[2])
    if not hosts:
        raise UserError(
            f"{path}: expected lines as `host slots=8`, found none; name at least one host"
        )
    return hosts


def _value(environment: Mapping[str, str], name: str) -> str:
    if not environment.get(name):
        raise UserError(
            f"{name}: expected it beside the launcher's other variables, found none; start the"
            " processes by one launcher, or unset its variables to let GPT1_PROCESSES decide"
        )
    return environment[name]


def _number(environment: Mapping[str, str], name: str) -> int:
    value = _value(environment, name)
    if not value.isascii() or not value.isdigit():
        raise UserError(
            f"{name}: expected a whole number, found {value!r}; start the processes by one launcher"
        )
    return int(value)
