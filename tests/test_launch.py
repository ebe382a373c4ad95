"""Launching: what the environment says, and processes that are killed, stopped, asked to end or
left alone: all end, none is left.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from gpt1.base.cores import free_port
from gpt1.base.errors import UserError
from gpt1.train import launch
from gpt1.train.engine import check_settings, settings_of, zero_stage
from gpt1.train.finetuning_data import finetune_job
from gpt1.train.launch import decide
from gpt1.train.launchers import first_host, read_hostfile, tasks_by_node, torch_variables

TORCHRUN = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "GROUP_WORLD_SIZE": "2",
    "MASTER_ADDR": "n1",
    "MASTER_PORT": "29500",
}
SRUN = {
    "SLURM_STEP_NUM_TASKS": "7",
    "SLURM_PROCID": "6",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "3",
    "SLURM_JOB_ID": "1234567",
    "SLURM_STEP_TASKS_PER_NODE": "2(x3),1",
    "SLURM_STEP_NODELIST": "gpu[003-006]",
    "SLURM_NTASKS": "7",
}
MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "MASTER_ADDR": "n1",
}


def on_cpu(settings, launcher=None):
    return decide(settings, launcher or {}, "cpu", 1, 8)


# What the environment says


def test_one_process_on_a_cpu_and_one_for_each_gpu():
    alone = on_cpu({})
    assert (alone.processes, alone.rank, alone.threads, alone.launched, alone.hosts) == (
        1,
        0,
        8,
        False,
        1,
    )
    assert on_cpu({"GPT1_PROCESSES": "2"}).threads == 4
    gpus = decide({}, {}, "cuda", 4, 16)
    assert (gpus.processes, gpus.threads, gpus.zero_stage) == (4, 4, None)
    assert (
        decide({"GPT1_PROCESSES": "2", "GPT1_ZERO_STAGE": "1"}, {}, "cuda", 4, 16).zero_stage == 1
    )


def test_several_processes_share_a_gpu_over_gloo_only():
    assert (on_cpu({}).backend, decide({}, {}, "cuda", 1, 4).backend) == ("gloo", "nccl")
    two = decide({"GPT1_PROCESSES": "2", "GPT1_BACKEND": "gloo"}, {}, "cuda", 1, 4)
    assert (two.processes, two.backend) == (2, "gloo")
    second = decide(
        {"GPT1_BACKEND": "gloo"},
        {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}
        | {"LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "1"},
        "cuda",
        1,
        4,
    )
    assert (second.rank, second.local_rank) == (1, 0)


def test_equal_bits_are_asked_of_a_gpu_only_where_they_are_promised(monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "use_deterministic_algorithms", asked.append)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    for device, settings in (
        ("cuda", {}),
        ("cpu", {"GPT1_DETERMINISTIC": "1"}),
        ("cuda", {"GPT1_DETERMINISTIC": "1"}),
    ):
        assert asked == []
        assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ
        launch.prepare(decide(settings, {}, device, 1, 4))
    assert asked == [True]
    assert os.environ.pop("CUBLAS_WORKSPACE_CONFIG") == ":4096:8"


def test_gradients_are_exchanged_during_the_backward_pass_of_several_gpus():
    stages = [
        (zero_stage(decide(settings, {}, device, devices, 8)), device, devices)
        for device, devices, settings in (
            ("cuda", 4, {}),
            ("cuda", 1, {}),
            ("cuda", 4, {"GPT1_ZERO_STAGE": "0"}),
            ("cuda", 1, {"GPT1_PROCESSES": "2", "GPT1_BACKEND": "gloo"}),
            ("cpu", 1, {"GPT1_PROCESSES": "2"}),
        )
    ]
    assert [stage for stage, *_ in stages] == [1, 0, 0, 0, 0]
    assert settings_of(1)["zero_optimization"]["overlap_comm"]


@pytest.mark.slow
def test_a_setting_that_deepspeed_does_not_know_is_refused():
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig

    for stage in (0, 1):
        check_settings(settings_of(stage))
        DeepSpeedZeroConfig(**settings_of(stage)["zero_optimization"])
    with pytest.raises(UserError, match="knows its settings gradient_cliping, found"):
        check_settings(settings_of(0) | {"gradient_cliping": 0.0})


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param(TORCHRUN, (8, 5, 1, 2, "n1", "29500"), id="torchrun"),
        pytest.param(
            {
                key: value
                for key, value in TORCHRUN.items()
                if "L_WORLD" not in key and "P_WORLD" not in key
            }
            | {"LOCAL_SIZE": "4", "CROSS_SIZE": "2"},
            (8, 5, 1, 2, "n1", "29500"),
            id="DeepSpeed",
        ),
        pytest.param(SRUN, (7, 6, 0, 4, "gpu003", str(20000 + 1234567 % 20000)), id="srun"),
        pytest.param(MPIRUN, (4, 1, 1, 2, "n1", "20000"), id="mpirun"),
        pytest.param(SRUN | TORCHRUN, (8, 5, 1, 2, "n1", "29500"), id="torchrun within srun"),
        pytest.param(SRUN | MPIRUN, (4, 1, 1, 2, "n1", "20000"), id="mpirun within srun"),
    ],
)
def test_launchers_are_understood(environment, expected):
    said = torch_variables(environment)
    machine = on_cpu({"GPT1_PROCESSES": "3", "GPT1_HOSTFILE": "not read"}, said)
    assert machine.launched
    assert (
        machine.processes,
        machine.rank,
        machine.local_rank,
        machine.hosts,
        said["MASTER_ADDR"],
        said["MASTER_PORT"],
    ) == expected


def test_a_batch_script_of_slurm_is_no_task_of_many():
    script = {
        "SLURM_NTASKS": "8",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "n[1-2]",
    }
    assert torch_variables(script) == {}
    assert torch_variables(script | {"SLURM_STEP_NUM_TASKS": "1"}) == {}, (
        "srun of a single task, as of a shell"
    )


def test_a_task_that_sees_but_its_own_gpu_takes_it():
    assert decide({}, torch_variables(SRUN | {"SLURM_LOCALID": "1"}), "cuda", 1, 4).local_rank == 0


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("gpu[003-006,010],login1", "gpu003"),
        ("n1,n2", "n1"),
        ("n7", "n7"),
        ("rack[2,4]-n[01-16]", "rack2-n01"),
    ],
)
def test_the_first_node_of_a_list(nodes, first):
    assert first_host(nodes) == first


def test_tasks_by_node():
    assert tasks_by_node("2(x3),1") == [2, 2, 2, 1]
    with pytest.raises(UserError, match=r"expected numbers as in \"2\(x3\),1\", found 'many'"):
        tasks_by_node("many")


@pytest.mark.parametrize(
    ("environment", "match"),
    [
        (
            {"RANK": "0"},
            "WORLD_SIZE: expected it beside the launcher's other variables, found none",
        ),
        ({"WORLD_SIZE": "2"}, "RANK: expected it"),
        (
            {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "n1", "MASTER_PORT": "1"},
            "LOCAL_RANK: expected it",
        ),
        ({"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, "MASTER_ADDR: expected it"),
        (TORCHRUN | {"RANK": "8"}, "RANK: expected a number below WORLD_SIZE, 8, found 8"),
        (TORCHRUN | {"WORLD_SIZE": "two"}, "WORLD_SIZE: expected a whole number, found 'two'"),
        (TORCHRUN | {"LOCAL_RANK": "one"}, "LOCAL_RANK: expected a whole number, found 'one'"),
        (
            TORCHRUN | {"LOCAL_WORLD_SIZE": "0"},
            "LOCAL_WORLD_SIZE: expected a number above 0, found 0",
        ),
        (
            MPIRUN | {"OMPI_COMM_WORLD_LOCAL_SIZE": "0"},
            "LOCAL_WORLD_SIZE: expected a number above 0, found 0",
        ),
        (
            {name: value for name, value in MPIRUN.items() if name != "MASTER_ADDR"},
            "MASTER_ADDR: expected it",
        ),
        (SRUN | {"SLURM_NODEID": "4"}, "SLURM_NODEID: expected one of the 4 nodes"),
    ],
)
def test_half_of_a_launcher_is_named(environment, match):
    with pytest.raises(UserError, match=match):
        torch_variables(environment)


@pytest.mark.parametrize(
    ("settings", "device", "devices", "match"),
    [
        ({}, "tpu", 1, "GPT1_DEVICE: expected cpu or cuda, found 'tpu'"),
        ({}, "cuda", 0, "GPT1_DEVICE: expected a GPU that torch can use, found none"),
        (
            {"GPT1_PROCESSES": "3"},
            "cuda",
            2,
            "GPT1_PROCESSES: expected at most one process for each of the 2 GPUs, found 3",
        ),
        (
            {"GPT1_PROCESSES": "0"},
            "cpu",
            1,
            "GPT1_PROCESSES: expected a whole number above 0, found '0'",
        ),
        ({"GPT1_ZERO_STAGE": "2"}, "cpu", 1, "GPT1_ZERO_STAGE: expected 0 or 1, found '2'"),
        ({"GPT1_BACKEND": "nccl"}, "cpu", 1, "GPT1_BACKEND: expected gloo for processes of a CPU"),
    ],
)
def test_settings_that_make_no_sense(settings, device, devices, match):
    with pytest.raises(UserError, match=match):
        decide(settings, {}, device, devices, 4)


def test_a_hostfile_counts_hosts_and_processes(tmp_path):
    (tmp_path / "hosts").write_text("# ours\nn1 slots=4\n\nn2   slots=2  # the old one\n")
    assert read_hostfile(tmp_path / "hosts") == {"n1": 4, "n2": 2}
    settings = {"GPT1_HOSTFILE": str(tmp_path / "hosts")}
    machine = decide(settings, {}, "cpu", 1, 8, over_hosts=True)
    assert (machine.processes, machine.hosts, machine.threads, machine.launched) == (6, 2, 2, False)
    (tmp_path / "hosts").write_text("localhost slots=4\n")
    here = decide(settings, {}, "cpu", 1, 8, over_hosts=True)
    assert (here.processes, here.hostfile) == (4, None), "this host is reached without ssh"


def test_only_pre_training_goes_over_hosts(tmp_path, monkeypatch):
    """A fine-tuning keeps to the GPU that it was given, and this machine lends out its own GPUs."""
    (tmp_path / "hosts").write_text("n1 slots=8\nn2 slots=8\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launch, "_device_count", lambda device: 2)
    for name in ("CUDA_VISIBLE_DEVICES", "GPT1_PROCESSES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("GPT1_DEVICE", "cuda"), ("GPT1_HOSTFILE", "hosts")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GPT1_PROCESSES", "1")
    finetuning = launch.read_machine()
    assert (finetuning.processes, finetuning.hosts, finetuning.hostfile) == (1, 1, None)
    assert not launch.spread(finetuning, "gpt1.stages", "finetune", "cola")
    pretraining = launch.read_machine(over_hosts=True)
    assert (pretraining.processes, pretraining.hosts) == (16, 2)


@pytest.mark.parametrize("stage", ["pretrain", "finetune", "zero_shot"])
def test_which_stage_asks_for_the_hosts(tmp_path, monkeypatch, stage):
    """They read their machine first of all, or after the parameters."""
    asked = []

    def read(over_hosts=False):
        asked.append(over_hosts)
        raise KeyboardInterrupt

    monkeypatch.setattr(launch, "read_machine", read)
    module = importlib.import_module(f"gpt1.stages.{stage}")
    monkeypatch.setattr(module, "read_params", lambda: None)
    with pytest.raises(KeyboardInterrupt):
        finetune_job(None, None, None) if stage == "finetune" else module.main("transformer", "0")
    assert asked == [stage == "pretrain"]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (None, "expected a file with lines as `host slots=8`, found no"),
        ("# none\n", "expected lines as `host slots=8`, found none"),
        (
            "n1 slots=2\nn2\n",
            "line 2: expected `host slots=N`, each host once, N above 0, found 'n2'",
        ),
        ("n1 slots=0\n", "line 1"),
        ("n1 slots=2\nn1 slots=2\n", "line 2"),
    ],
)
def test_a_bad_hostfile_is_one_line(tmp_path, text, match):
    if text is not None:
        (tmp_path / "hosts").write_text(text)
    with pytest.raises(UserError, match=match):
        read_hostfile(tmp_path / "hosts")


SEEN = """
import os
from dataclasses import replace
import torch
from gpt1.train.engine import DeepSpeedEngine
from gpt1.train.launch import decide, prepare, torch_variables
from test_engine import TINY, machine
machine = decide({}, torch_variables(os.environ), "cuda", 1, 4)
prepare(machine)
from gpt1.params.schema import Optimization
from pathlib import Path
import sys
from gpt1.params.schema import validate
from gpt1.params.yaml import read_yaml
recipe = validate(read_yaml(Path(sys.argv[1]))).pretrain
engine = DeepSpeedEngine(torch.nn.Linear(2, 2), recipe, replace(machine, device="cpu", backend="gloo"))
print("GPU", engine.engine.local_rank, os.environ["LOCAL_RANK"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "task",
    [
        {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "3"},
        {
            "OMPI_COMM_WORLD_RANK": "0",
            "OMPI_COMM_WORLD_SIZE": "1",
            "OMPI_COMM_WORLD_LOCAL_RANK": "3",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
        },
    ],
    ids=["torch", "mpirun"],
)
def test_deepspeed_takes_the_one_gpu_that_a_task_sees(request, task):
    root = request.config.rootpath
    done = subprocess.run(
        [sys.executable, "-c", SEEN, str(root / "conf/paper.yaml")],
        env=os.environ
        | {"PYTHONPATH": f"{root}:{root / 'tests'}", "MASTER_PORT": str(free_port())}
        | {"MASTER_ADDR": "127.0.0.1"}
        | task,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "GPU 0 0" in done.stdout


PDSH = """#!/bin/sh
# pdsh -S -f 1024 -w HOSTS COMMAND...: every host is this one, without our environment; %n is its number
shift 5
for number in 0 1; do
    env -i PATH="$PATH" HOME="$HOME" sh -c "$(echo "$*" | sed s/%n/$number/)" &
done
wait
"""
SPREAD = """
from gpt1.train.launch import read_machine, spread
print("done", spread(read_machine(over_hosts=True), "report", "word"))
"""
REPORT = """
import json, os, sys
from pathlib import Path
from gpt1.train.launch import facts, read_machine
machine = read_machine()
told = {name: os.environ.get(name) for name in ("GLOO_SOCKET_IFNAME", "CXX", "UNRELATED")}
Path(f"{machine.rank}.json").write_text(json.dumps([machine.local_rank, machine.micro_batch, facts(machine), told, sys.argv[1:]]))
"""


@pytest.mark.slow
@pytest.mark.long
def test_deepspeed_starts_the_processes_of_a_hostfile(tmp_path):
    """Its launcher in earnest; pdsh and ssh, which would reach other hosts, reach this one
    twice.
    """
    for name, text in (("pdsh", PDSH), ("ssh", "#!/bin/sh\necho 127.0.0.1\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "hosts").write_text("n1 slots=2\nn2 slots=1\n")
    (tmp_path / "report.py").write_text(REPORT)
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": f"{Path(__file__).parents[1]}:{tmp_path}",
        "GPT1_DEVICE": "cpu",
        "GPT1_HOSTFILE": "hosts",
        "GPT1_MICRO_BATCH": "3",
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "CXX": "ccache g++",
        "UNRELATED": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", SPREAD],
        cwd=tmp_path,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "done True" in done.stdout
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(3)]
    assert [
        (local_rank, facts["processes"], facts["hosts"]) for local_rank, _, facts, *_ in found
    ] == [(0, 3, 2), (1, 3, 2), (0, 3, 2)]
    told = {"GLOO_SOCKET_IFNAME": "lo", "CXX": "ccache g++", "UNRELATED": None}
    assert [one[1] for one in found] == [3] * 3
    assert [one[3:] for one in found] == [[told, ["word"]]] * 3


# Processes: `WORKER` does one thing in each of three of them; without torch where it exchanges
# nothing

LAUNCHER = """
import os, sys
from gpt1.train.supervisor import run_together
run_together([sys.executable, "-c", sys.argv[1]], [{**os.environ, "RANK": str(rank)} for rank in range(3)], float(sys.argv[2]))
print("all well")
"""
WORKER = """
import os, signal, sys, time
from pathlib import Path
from gpt1.train.supervisor import join
join()
rank = int(os.environ["RANK"])
def there():
    Path(f"{rank}.part").write_text(str(os.getpid()))
    Path(f"{rank}.part").rename(f"{rank}.pid")
"""
EXCHANGE = (
    WORKER
    + """
import torch
torch.distributed.init_process_group("gloo", init_method=Path("meet").absolute().as_uri(), rank=rank, world_size=3)
torch.distributed.barrier()
there()
while True:
    torch.distributed.all_reduce(torch.ones(10))
    time.sleep(0.02)
"""
)
WAIT = WORKER + "there()\ntime.sleep(300)\n"
INTERRUPTED = (
    WORKER
    + """
def ask(number, frame):
    time.sleep(1.6 if rank == 0 else 0)  # it has a checkpoint to write
    print("interrupted, saved", file=sys.stderr)
    sys.exit(128 + number)
signal.signal(signal.SIGTERM, ask)
there()
time.sleep(300)
"""
)
FAILING = (
    WORKER
    + """
if rank == 1:
    there()
    FAILURE
time.sleep(300)
"""
)


class Launched:
    """A launcher of three processes in a folder of their own."""

    def __init__(self, folder, worker, silent_seconds=100.0):
        self.folder = folder
        environment = os.environ | {
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "OMP_NUM_THREADS": "1",
        }
        self.launcher = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, worker, str(silent_seconds)],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def pids(self):
        """Of the three processes, once all are at work."""
        deadline = time.monotonic() + 100
        while len(list(self.folder.glob("*.pid"))) < 3:
            assert self.launcher.poll() is None, (
                f"the launcher has ended: {self.launcher.communicate()}"
            )
            assert time.monotonic() < deadline, "the processes did not come to work"
            time.sleep(0.02)
        return [int((self.folder / f"{rank}.pid").read_text()) for rank in range(3)]

    def ended(self, pids, within):
        """The launcher's status and what was said on stderr; all must have ended within so many
        seconds.
        """
        began = time.monotonic()
        _, said = self.launcher.communicate(timeout=100)
        while left := [
            pid
            for pid in pids
            if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        ]:
            assert time.monotonic() - began < within, f"processes are left: {left}"
            time.sleep(0.05)
        assert time.monotonic() - began < within
        return self.launcher.returncode, said


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_is_named_and_ends_all(tmp_path, rank):
    launched = Launched(tmp_path, EXCHANGE)
    pids = launched.pids()
    os.kill(pids[rank], signal.SIGKILL)
    status, said = launched.ended(pids, 30)
    assert (status, said) == (
        137,
        (
            f"error: process {rank} of 3 (the first is 0) was ended by SIGKILL, and the others with"
            " it; SIGKILL is often want of memory\n"
        ),
    )


@pytest.mark.slow
def test_a_stopped_process_is_named_and_ends_all(tmp_path):
    launched = Launched(tmp_path, EXCHANGE, silent_seconds=4.0)
    pids = launched.pids()
    time.sleep(5.0)
    assert launched.launcher.poll() is None, (
        f"what works has been taken for dead: {launched.launcher.communicate()}"
    )
    os.kill(pids[2], signal.SIGSTOP)
    status, said = launched.ended(pids, 30)
    assert status == 1
    assert said.startswith(
        "error: process 2 of 3 (the first is 0) has stood still for 4 s and all have been ended; "
    ), said
    assert said.count("\n") == 1, said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failure", "status", "words"),
    [
        (
            "raise ValueError('a bad window')",
            1,
            "error: process 1 of 3 (the first is 0): ValueError: a bad window\n",
        ),
        ("sys.exit('error: loss is nan')", 1, "error: loss is nan\n"),
        (
            "os._exit(7)",
            7,
            "error: process 1 of 3 (the first is 0): ended with status 7 and without a word\n",
        ),
    ],
)
def test_a_process_that_fails_speaks_for_itself(tmp_path, failure, status, words):
    launched = Launched(tmp_path, FAILING.replace("FAILURE", failure))
    assert launched.ended([], 30) == (status, words)


@pytest.mark.slow
def test_all_interrupted_at_different_times_say_so_once(tmp_path):
    launched = Launched(tmp_path, INTERRUPTED)
    pids = launched.pids()
    launched.launcher.terminate()
    assert launched.ended(pids, 10) == (143, "interrupted, saved\n")


def test_a_killed_launcher_leaves_no_orphan(tmp_path):
    launched = Launched(tmp_path, WAIT)
    pids = launched.pids()
    launched.launcher.kill()
    assert launched.ended(pids, 10)[0] == -signal.SIGKILL
