"""`gpt1 run` and the flows, over a real DVC graph of tiny stages: order, failures, ends of every kind."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from functools import cache
from itertools import takewhile
from pathlib import Path
from sqlite3 import connect

import psutil
import pytest
from made_data import put_files, write_params, write_shards

from flows.graph import Stage, longest_paths, outlook, read_graph
from flows.lanes import Lanes
from flows.progress import Progress, usual_seconds
from flows.server import free_port, is_up
from gpt1.base.errors import INTERRUPTED_STATUS, UserError
from gpt1.base.files import sha256_file

ROOT = Path(__file__).parents[1]
DVC = [sys.executable, "-m", "dvc"]
STAGE = """
import json, os, pathlib, signal, sys, time
from gpt1.base.interrupts import end_with_parent
end_with_parent()
name, out = sys.argv[1:]
def save(number, _):
    pathlib.Path(f"saved-{name}").touch()
    sys.exit(128 + number)
signal.signal(signal.SIGINT, save), signal.signal(signal.SIGTERM, save)
part = pathlib.Path(f"part-{name}")
part.write_text(str(os.getpid()))
part.rename(f"pid-{name}")
if pathlib.Path(f"fail-{name}").exists():
    sys.exit("error: made to fail")
if pathlib.Path(f"lose-{name}").exists():
    pathlib.Path(f"lose-{name}").unlink()
    os.kill(os.getpid(), signal.SIGKILL)
while pathlib.Path(f"wait-{name}").exists():
    time.sleep(0.05)
pathlib.Path(out).parent.mkdir(exist_ok=True)
pathlib.Path(out).write_text(name)
with open("journal", "a") as journal:
    journal.write(json.dumps([name, os.environ.get("GPT1_THREADS")]) + "\\n")
"""
GRAPH = """
stages:
  first: {cmd: python stage.py first out/first, deps: [stage.py], outs: [out/first]}
  work:
    foreach: [a, b]
    do: {cmd: "python stage.py work-${item} out/${item}", deps: [out/first], outs: ["out/${item}"]}
  table2: {cmd: python stage.py table2 out/table2, deps: [out/a], outs: [out/table2]}
"""
PRETRAINING = """
stages:
  pretrain:
    cmd: python -m gpt1.stages pretrain transformer 0
    params: [{params.yaml: }]
    deps: [data/shard]
    outs: [data/pretrain/transformer]
"""
LINE = "pretrain transformer/seed-0: update {} of 2400, loss 3.214, 9 tokens/s, 19.1 min left\n"
RUN_DEPLOYMENT = ("-m", "prefect", "deployment", "run")
NAMES = ["first", "table2", "work-a", "work-b"]


TEMPLATE = tempfile.TemporaryDirectory(prefix="gpt1-repository-")


@cache
def repository():
    """An empty folder under git and DVC, to be copied."""
    for command in (["git", "init", "-q"], [*DVC, "init", "-q"]):
        subprocess.run(command, cwd=TEMPLATE.name, check=True)
    return TEMPLATE.name


class Graph:
    """The folder, and `gpt1 run` in it."""

    def __init__(self, folder, **settings):
        self.folder, self.settings = folder, settings
        (folder / "stage.py").write_text(STAGE)
        (folder / "dvc.yaml").write_text(GRAPH)
        for name in ("params.yaml", "prefect.toml"):
            (folder / name).symlink_to(ROOT / name)
        shutil.copytree(repository(), folder, dirs_exist_ok=True)

    def start(self, *words, program=("-m", "gpt1.cli", "run"), **variables):
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PREFECT", "GPT1"))
        }
        return subprocess.Popen(
            [sys.executable, *program, *words],
            cwd=self.folder,
            env=kept | {"HOME": str(self.folder), "DVC_NO_ANALYTICS": "true", "PYTHONPATH": str(ROOT),
                        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
            | self.settings | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )  # fmt: skip

    def run(self, *words, status=0, **variables):
        process = self.start(*words, **variables)
        said = process.communicate(timeout=200)[0]
        assert process.returncode == status, said
        return said

    def journal(self):
        lines = (self.folder / "journal").read_text().splitlines()
        return [json.loads(line)[0] for line in lines]

    def pid(self, name):
        until(lambda: (self.folder / f"pid-{name}").exists())
        return int((self.folder / f"pid-{name}").read_text())

    @contextmanager
    def waiting(self, *names):
        for name in names:
            (self.folder / f"wait-{name}").touch()
        yield
        for name in names:
            (self.folder / f"wait-{name}").unlink()


def until(done, seconds=100):
    limit = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < limit, f"not within {seconds} s"
        time.sleep(0.1)


@pytest.fixture
def graph(tmp_path):
    return Graph(tmp_path)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a Prefect server: a run that has none starts its own, which takes seconds,
    with a copy of this one's empty database, which takes more to make.
    """
    port, home = str(free_port()), tmp_path_factory.mktemp("prefect")
    command = [sys.executable, "-m", "prefect", "server", "start", "--port", port]
    environment = os.environ | {"PREFECT_HOME": str(home)}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    )
    until(lambda: is_up(f"http://127.0.0.1:{port}/api/health"))
    (own := Path(repository(), ".prefect")).mkdir()
    connect(home / "prefect.db").backup(connect(own / "prefect.db"))
    yield f"http://127.0.0.1:{port}/api"
    os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def served(tmp_path, server):
    return Graph(tmp_path, PREFECT_API_URL=server)


def test_the_graph_is_dvcs_and_says_what_is_out_of_date(graph, monkeypatch):
    monkeypatch.chdir(graph.folder)
    stages = read_graph([])
    assert stages["table2"].needs == ("work@a",)
    assert list(stages).index("first") < list(stages).index("work@a") < list(stages).index("table2")
    assert set(read_graph(["table2"])) == {"first", "work@a", "table2"}
    assert set(read_graph(["work"])) == {"first", "work@a", "work@b"}
    assert all(stage.outdated for stage in stages.values())
    with pytest.raises(UserError, match=r"no stage tabel2; did you mean table2\?"):
        read_graph(["work@a", "tabel2"])
    assert not graph.start("repro", "work@b", program=("-m", "dvc")).wait()
    assert outlook(read_graph([])) == "2 of 4 stages have to run (work@a, table2)"
    Path("out/a").mkdir()
    Path("out/a/gone").symlink_to("nowhere")
    with pytest.raises(UserError, match=r"out/a/gone is a link to nothing"):
        read_graph([])
    lock = Path("dvc.lock")
    whole = lock.read_text()
    for text in (whole.replace("first:", "<<<<<<< HEAD\n  first:"), whole.replace("2.0", "3.0")):
        lock.write_text(text)
        with pytest.raises(UserError, match=r"DVC says: .*dvc\.lock.*\(settle it, or put a whole"):
            read_graph([])
        assert lock.read_text() == text, "no kill tore it, so it is a person's to settle"


def test_the_longest_path_and_the_time_left_by_hand(tmp_path, monkeypatch):
    stages = {
        "first": Stage((), True, False),
        "short": Stage(("first",), True, False),
        "long": Stage(("first",), True, True),
        "last": Stage(("long",), True, False),
    }
    seconds = {"first": 1.0, "short": 2.0, "long": 30.0, "last": 4.0}
    assert longest_paths(stages, seconds) == {"first": 35, "short": 2, "long": 34, "last": 4}
    usual = usual_seconds(["clean", name := "pretrain@transformer-0"], gpu=False)
    assert usual["clean"] == 5 < usual[name]
    monkeypatch.chdir(tmp_path)
    put_files(tmp_path, {f"data/logs/run/{name}.log": LINE.format(1) + LINE.format(165)})
    progress = Progress({name, "clean", "short"}, seconds | usual, 1)
    progress.began = {name: time.monotonic(), "short": time.monotonic() - 1}
    progress.tick()
    said = f"19.2 min left: {name} (loss 3.214, 165 of 2400), short"
    assert progress.tasks[0].description == said


def test_a_place_is_a_lane_with_its_threads_and_a_gpu_where_a_network_runs():
    lanes, threads = Lanes(2, 3, []), {"GPT1_THREADS": "3"}
    ready = {"finetune@cola": True, "clean": False, "bpe": False}
    assert lanes.fill(ready) == {"finetune@cola": threads, "clean": threads}
    lanes.give_back("clean")
    assert lanes.fill({"bpe": False}) == {"bpe": threads}
    with pytest.raises(UserError, match="lanes: expected a number above 0, found -1"):
        Lanes.of_machine(-1)
    lanes = Lanes(8, None, ["4", "5"], 2)
    tuning = {"CUDA_VISIBLE_DEVICES": "4", "GPT1_PROCESSES": "1"}
    assert lanes.fill({"finetune@cola": True}) == {"finetune@cola": tuning}
    ready = {"pretrain@transformer-0": True, "finetune@rte": True, "clean": False}
    assert lanes.fill(ready) == {"clean": {}}, "what is less urgent leaves it the GPUs"
    lanes.give_back("finetune@cola")
    both = {"CUDA_VISIBLE_DEVICES": "5,4", "GPT1_PROCESSES": "2"}
    assert lanes.fill(ready)["pretrain@transformer-0"] == both


@pytest.mark.parametrize(("processes", "together"), [("", 4), ("4", 4), ("9", 6)])
def test_a_pre_training_takes_gpus_that_its_batch_can_be_shared_among(
    processes, together, monkeypatch
):
    monkeypatch.chdir(Path(__file__).parents[1])  # whose batch is of 16 rows
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5")
    monkeypatch.setenv("GPT1_PROCESSES", processes)
    monkeypatch.setattr("flows.lanes.usable_gpus", lambda: 6)
    assert Lanes.of_machine().together == together


@pytest.mark.slow
@pytest.mark.server
def test_each_stage_runs_once_after_its_needs_and_then_nothing_starts_a_server(graph, server):
    said = graph.run(PREFECT_API_URL="http://127.0.0.1:9/api")
    assert "no Prefect server answers at http://127.0.0.1:9/api" in said, "so it starts its own"
    assert sorted(graph.journal()) == NAMES
    assert graph.journal()[0] == "first"
    assert graph.journal().index("work-a") < graph.journal().index("table2")
    assert "4 of 4 stages have to run" in said
    assert "everything is up to date" in said
    assert "Error" not in said
    assert (graph.folder / "data/logs/run/work@a.log").read_text().startswith("Running stage")
    (graph.folder / "data/logs/serve/prefect.log").unlink()
    assert "everything is up to date (4 stages)" in graph.run()
    assert not (graph.folder / "data/logs/serve/prefect.log").exists()
    graph.settings["PREFECT_API_URL"] = server
    with (graph.folder / "stage.py").open("a") as stage:
        stage.write("# first runs again, and makes the same as before\n")
    assert "1 of 4 stages have to run (first), and 3 more if" in graph.run()
    assert sorted(graph.journal()) == sorted([*NAMES, "first"])
    (graph.folder / "out/a").unlink()
    lock = graph.folder / "dvc.lock"
    lock.write_text((whole := lock.read_text())[: len(whole) // 2] + "[")  # as by a kill
    assert "it is .dvc/tmp/dvc.lock.torn now" in graph.run()
    assert len(graph.journal()) == 5, "all came from DVC's cache"
    assert sorted(lock.read_text()) == sorted(whole), "in another order perhaps"


@pytest.mark.slow
@pytest.mark.server
def test_what_does_not_need_a_failed_stage_goes_on_and_a_lost_one_is_tried_again(served):
    (served.folder / "fail-work-a").touch()
    (served.folder / "lose-work-b").touch()
    (served.folder / ".dvc/tmp/rwlock").touch()  # as a DVC leaves it that is killed at that moment
    said = served.run(status=1)
    assert sorted(served.journal()) == ["first", "work-b"]
    assert "error: work@a: made to fail (log: data/logs/run/work@a.log)" in said
    assert "error: 1 failed: work@a; what needs none of them is done" in said
    (served.folder / "fail-work-a").unlink()
    served.run("table2")
    assert sorted(served.journal()) == NAMES
    assert seen(served.settings["PREFECT_API_URL"][:-4], "name")[:2] == [
        "table2 · demo",
        "all · demo",
    ]


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.parametrize(
    ("number", "whole_group"), [(signal.SIGINT, True), (signal.SIGKILL, False)]
)
def test_a_run_that_is_ended_saves_leaves_nothing_and_goes_on(served, number, whole_group):
    with served.waiting("work-a", "work-b"):
        process = served.start()
        pids = [served.pid("work-a"), served.pid("work-b")]
        family = psutil.Process(process.pid).children(recursive=True)
        assert {one.pid for one in family} >= set(pids)
        (os.killpg if whole_group else os.kill)(process.pid, number)
        said = process.communicate(timeout=60)[0]
        until(lambda: not [one for one in family if one.is_running() and one.status() != "zombie"])
    assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 130), said
    assert {path.name for path in served.folder.glob("saved-*")} == {"saved-work-a", "saved-work-b"}
    served.run()
    assert sorted(served.journal()) == NAMES


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.parametrize("cluster", [pytest.param("ray", marks=pytest.mark.long), "dask"])
def test_a_cluster_runs_each_stage_once(served, cluster):
    pytest.importorskip(f"prefect_{cluster}")
    served.run(GPT1_TASK_RUNNER=cluster)
    assert sorted(served.journal()) == NAMES


@pytest.mark.slow
def test_a_training_whose_dvc_is_killed_at_its_end_is_not_run_again(graph, monkeypatch):
    monkeypatch.chdir(graph.folder)
    shutil.copyfile(ROOT / ".dvc/config", ".dvc/config")
    (graph.folder / "params.yaml").unlink()
    write_params(graph.folder)
    write_shards(Path("data/shard"))
    Path("dvc.yaml").write_text(PRETRAINING)

    def repro():
        return graph.start("repro", program=("-m", "dvc"), GPT1_MLFLOW="off").communicate()[0]

    killed = graph.start("repro", program=("-m", "dvc"), GPT1_MLFLOW="off")
    until(psutil.Process(killed.pid).children)
    killed.send_signal(signal.SIGSTOP)
    until(lambda: psutil.Process(killed.pid).children()[0].status() == "zombie")
    killed.kill()
    killed.communicate()
    assert not Path("dvc.lock").exists()
    [kept] = Path().glob("data/checkpoints/*/seed-0")
    out, made = Path("data/pretrain/transformer/seed-0"), sha256_file(kept / "weights.safetensors")
    assert (out / "summary.json").samefile(kept / "summary.json"), "twice on the disk"
    assert "seed-0 is trained: its files are the outputs" in repro()
    assert sha256_file(out / "weights.safetensors") == made
    write_params(graph.folder, pretrain__learning_rate=0.002)
    assert "is trained" not in repro()
    [kept] = Path().glob("data/checkpoints/*/seed-0")  # and not the one before
    state = json.loads((kept / "state.json").read_text())
    (kept / "state.json").write_text(json.dumps(state | {"code": {}}))
    Path("dvc.lock").unlink()
    shutil.rmtree(".dvc/cache")
    said = repro()
    assert "is trained" not in said
    assert "'dvc.lock'" in said, "what other code has made is made anew"


@pytest.mark.slow
@pytest.mark.server
def test_a_second_run_is_refused_and_a_dvc_at_work_is_waited_for(served):
    with served.waiting("first"):
        by_hand = served.start("repro", "-q", "first", program=("-m", "dvc"))
        served.pid("first")
        run = served.start("work@a")
        lines = iter(run.stdout.readline, "")
        assert any("first waits for" in line and f"PID {by_hand.pid}" in line for line in lines)
        assert "another run is at work here, process" in served.run("work@b", status=2)
    assert run.wait(100) == 0
    assert by_hand.wait(100) == 0
    assert sorted(served.journal()) == ["first", "work-a"]


@contextmanager
def serving(graph):
    """`make serve` in a folder: the process, and the address of Prefect's API."""
    script = (
        f"import os, flows.serve as s; os.chdir({str(graph.folder)!r}); s.run_stage(s.serve_flows)"
    )
    service = graph.start(program=("-c", script), GPT1_MLFLOW="off")
    try:
        lines = list(
            takewhile(lambda line: "next, in" not in line, iter(service.stdout.readline, ""))
        )
        family = psutil.Process(service.pid).children(recursive=True)
        yield service, re.search(r"http://127.0.0.1:\d+", "".join(lines))[0]
    finally:
        if service.poll() is None:
            os.killpg(service.pid, signal.SIGINT)
            assert service.wait(30) in (0, INTERRUPTED_STATUS)  # the latter as it starts
        until(lambda: not [one for one in family if one.is_running() and one.status() != "zombie"])


def seen(address, key="state_name"):
    """A fact of the runs that a server knows, the latest first."""
    request = urllib.request.Request(
        f"{address}/api/flow_runs/filter",
        b'{"sort": "EXPECTED_START_TIME_DESC"}',
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return [run[key] for run in json.load(answer)]


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.timeout(400)
def test_the_service_runs_and_cancels_what_is_asked_for_in_its_folder(graph, tmp_path_factory):
    """`make serve`, then `prefect deployment run reproduce-table2`, by its bare name."""
    other = Graph(tmp_path_factory.mktemp("other"))
    with serving(graph) as (_, address):
        alone = other.start("reproduce-table2", program=RUN_DEPLOYMENT)
        assert "make serve starts one" in (said := alone.communicate()[0]), said
        assert said.count("\n") == 1
        with graph.waiting("work-a"):
            done = graph.start("reproduce-table2", program=RUN_DEPLOYMENT)
            assert done.wait(100) == 0, done.stdout.read()
            stage = graph.pid("work-a")
            run = next(word for word in done.stdout.read().split() if len(word) == 36)
            cancel = graph.start(run, program=("-m", "prefect", "flow-run", "cancel"))
            assert cancel.wait(60) == 0
            until(lambda: not psutil.pid_exists(stage))
            assert (graph.folder / "saved-work-a").exists()
        graph.start("reproduce-table2", "--watch", program=RUN_DEPLOYMENT).communicate(timeout=200)
        assert sorted(graph.journal()) == ["first", "table2", "work-a"]
        assert seen(address) == ["Completed", "Cancelled"]


@pytest.mark.long
@pytest.mark.server
@pytest.mark.timeout(400)
def test_the_service_starts_a_lost_server_again_and_a_killed_run_has_crashed(graph):
    with serving(graph) as (service, address):
        [server] = [
            child for child in psutil.Process(service.pid).children() if "server" in child.cmdline()
        ]
        graph.start("reproduce-table2", "--watch", program=RUN_DEPLOYMENT).wait(200)  # as in use
        server.kill()
        assert any("it is started again" in line for line in iter(service.stdout.readline, ""))
        until(lambda: is_up(f"{address}/api/health"))
        with graph.waiting("work-b"):
            graph.start("reproduce-all", program=RUN_DEPLOYMENT).wait(100)
            graph.pid("work-b")
            for process in (*psutil.Process(service.pid).children(recursive=True), service):
                process.kill()
            service.wait()
    with serving(graph) as (_, address):
        assert seen(address)[0] == "Crashed"
