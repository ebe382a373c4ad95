"""A model of MLflow's registry as people use it: registered twice, loaded as a python_function,
served and asked over HTTP.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from made_answers import write_model, write_models
from made_results import empty_mlflow

from flows.server import free_port
from gpt1.inference.finetuned import finetuned_task
from gpt1.inference.registered import register, serve_command
from gpt1.inference.saved import load_model
from gpt1.params.schema import read_params
from gpt1.tasks.rows import Example

pytestmark = [pytest.mark.slow, pytest.mark.server]
NAME = "gpt1-paper-rte"
PAIR = {"first": "a cat sat", "second": "it sat"}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A folder with a task model in it, registered there."""
    folder = tmp_path_factory.mktemp("registered")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("GPT1_DEVICE", "cpu")
        for name in ("MLFLOW_TRACKING_URI", "GPT1_MLFLOW"):
            patch.delenv(name, raising=False)
        write_models(folder, "rte", "race")
        shutil.copy(empty_mlflow(tmp_path_factory), "mlflow.db")
        patch.setenv(
            "MLFLOW_TRACKING_URI", f"sqlite:///{folder}/mlflow.db"
        )  # for MLflow's own functions, asked in the tests
        register(read_params(), ["rte"])
        yield folder


def predicted(fields):
    """What our own model answers."""
    weights = finetuned_task("rte").weights(None)
    return load_model(weights, Path("data/bpe")).answer(Example(tuple(fields.values())))


def test_the_best_seed_is_registered_once(checkout):
    from mlflow import MlflowClient
    from mlflow.models import get_model_info

    client = MlflowClient()
    version = client.get_model_version_by_alias(NAME, "best")
    assert (str(version.version), version.tags["seed"]) == ("1", "1")
    assert client.get_run(version.run_id).info.run_name == "rte full seed 1"
    assert serve_command(NAME) in client.get_registered_model(NAME).description
    assert [one.new for one in register(read_params(), ["rte"])] == [False]
    assert len(client.search_model_versions(f"name = '{NAME}'")) == 1
    info = get_model_info(f"models:/{NAME}@best")
    assert info.signature.inputs.input_names() == ["first", "second"]
    files = [path for path in Path("mlruns").rglob("*") if path.is_file()]
    assert [path.name for path in files if path.suffix in (".pkl", ".pickle", ".bin", ".pt")] == []
    assert len([path for path in files if path.name == "weights.safetensors"]) == 1

    write_model(
        "rte", {0: 0.9, 1: 0.75}, read_params()
    )  # another seed is best now: the alias moves, the old version stays
    assert [(one.version, one.seed, one.new) for one in register(read_params(), ["rte"])] == [
        ("2", 0, True)
    ]
    assert str(client.get_model_version_by_alias(NAME, "best").version) == "2"
    assert client.get_model_version(NAME, "1").tags["seed"] == "1"


def test_choices_come_as_a_list(checkout):
    import mlflow

    register(read_params(), ["race"])
    model = mlflow.pyfunc.load_model("models:/gpt1-paper-race@best")
    (answer,) = model.predict([{"first": "p", "second": "q", "choices": ["a", "b", "c", "d"]}])
    assert answer["choice"] == "abcd"["ABCD".index(answer["label"])]
    assert sum(answer["probabilities"].values()) == pytest.approx(1)


def ask(port, records):
    """Status and answer of the served model."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/invocations",
        json.dumps({"dataframe_records": records}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_served_model_answers_as_predict_does(checkout):
    _, module, *arguments, _ = serve_command(NAME).split()
    port = free_port()
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments, str(port)],
        env=environment,
        cwd="/",
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            end = time.monotonic() + 120
            while True:
                try:
                    status, answer = ask(port, [PAIR, {"first": "b", "second": "c d e f g"}])
                    break
                except OSError:
                    assert server.poll() is None
                    assert time.monotonic() < end
                    time.sleep(0.2)
            assert status == 200
            assert answer == {
                "predictions": [predicted(PAIR), predicted({"first": "b", "second": "c d e f g"})]
            }
            status, refused = ask(port, [{"first": "a", "second": " "}])
            assert status == 400
            assert "row 0: expected first, second for rte" in str(refused["message"])
        finally:
            os.killpg(server.pid, signal.SIGTERM)
