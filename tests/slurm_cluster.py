"""A Slurm cluster of this machine: munge's daemon, Slurm's controller and two node daemons, on ports and in files of their own."""

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from getpass import getuser
from pathlib import Path

import pytest

from flows.server import free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun")
absent = [
    name for name in PROGRAMS if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
]
needs_slurm = pytest.mark.skipif(
    bool(absent), reason=f"no {', '.join(absent)} here: apt install slurm-wlm munge"
)
NODES = ("node1", "node2")
CONF = """
ClusterName=test
SlurmctldHost=localhost
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmctldPort={port}
KillWait=5
NodeName=node1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={first} CPUs=2 RealMemory=4000 State=UNKNOWN
NodeName=node2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={second} CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES State=UP
"""


def slurm(*words: str) -> str:
    """What a command of Slurm says."""
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout


def wait_for(done: Callable[[], bool], what: Callable[[], str], seconds: float = 60.0) -> None:
    """Until `done()` holds; what() tells what did not."""
    limit = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < limit, f"{what()}: not within {seconds:.0f} s"
        time.sleep(0.2)


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[None]:
    """Two nodes of two cores; SLURM_CONF in this process's environment leads to them. The folder's path is to be a short one, for a socket."""
    folder.chmod(0o755)
    (folder / "key").write_bytes(secrets.token_bytes(1024))
    (folder / "key").chmod(0o400)
    for name in ("state", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir()
    conf = folder / "slurm.conf"
    ports = dict(zip(("port", "first", "second"), (free_port() for _ in range(3)), strict=True))
    conf.write_text(CONF.format(folder=folder, user=getuser(), **ports))
    munge = [
        f"--{name}={folder / file}"
        for name, file in (
            ("key-file", "key"),
            ("socket", "munge.socket"),
            ("pid-file", "munge.pid"),
            ("log-file", "munge.log"),
            ("seed-file", "munge.seed"),
        )
    ]
    commands = [
        ["munged", "--foreground", "--force", *munge],
        ["slurmctld", "-D", "-f", str(conf)],
        *(["slurmd", "-D", "-N", node, "-f", str(conf)] for node in NODES),
    ]
    daemons = []
    with pytest.MonkeyPatch.context() as patch, (folder / "daemons.log").open("wb") as log:
        patch.setenv("SLURM_CONF", str(conf))
        patch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin")
        try:
            for command in commands:
                daemons.append(
                    subprocess.Popen(
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )
                time.sleep(0.5)
            wait_for(
                lambda: slurm("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == "2",
                (folder / "daemons.log").read_text,
            )
            yield
        finally:
            with suppress(subprocess.SubprocessError):
                slurm("scancel", "--user", getuser())
            for daemon in reversed(daemons):
                daemon.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    daemon.wait(15)
                daemon.kill()
