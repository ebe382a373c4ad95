"""The files of deployments name the same things, all of which exist, and give their work pools what
these take.
"""

import io
import json
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import prefect
import pytest
import yaml
from copied_checkout import ROOT

POOLED = ("docker", "kubernetes", "slurm")
KINDS = {
    "process": ROOT / "prefect.yaml",
    **{kind: ROOT / "flows" / kind / "prefect.yaml" for kind in POOLED},
}
STAGES = {"process": 1, "docker": 1, "kubernetes": 3, "slurm": 3}  # deployments of one stage
PROFILES = sorted(path.stem for path in (ROOT / "conf").glob("*.yaml"))
FLOWS = ["table2", "table3", "table4", "table5", "figure2", "all"]
PARAMETERS: dict[str, dict[str, str]] = {
    "checkout": {},
    **{name: {"profile": name} for name in PROFILES},
}
TEMPLATES = {kind: ROOT / "flows" / kind / "job-template.json" for kind in POOLED}
DOCKERFILE = ROOT / "flows/docker/Dockerfile"
METADATA = (
    Path(prefect.__file__).parent
    / "server/api/collections_data/views/aggregate-worker-metadata.json"
)


def deployments(kind: str) -> list[dict[str, Any]]:
    """The rows of one file, as `prefect deploy` reads them."""
    from prefect.cli.deploy._config import _load_deploy_configs_and_actions
    from rich.console import Console

    console = Console(record=True, width=200, file=io.StringIO())
    rows, actions = _load_deploy_configs_and_actions(KINDS[kind], console=console)
    said = console.export_text()
    assert not said, f"Prefect refuses {KINDS[kind]}: {said}"
    return [{"pull": actions["pull"], **row} for row in rows]


def template(kind: str) -> dict[str, Any]:
    """What a work pool of this kind is made with: our own template, or for processes the one that
    Prefect brings.
    """
    text = TEMPLATES.get(kind, METADATA).read_text(encoding="utf-8")
    read: dict[str, Any] = json.loads(text)
    if kind == "process":
        read = read["prefect"][kind]["default_base_job_configuration"]
    return read


def job(row: dict[str, Any], kind: str) -> dict[str, Any]:
    """The configuration of a run that a worker makes of a deployment and its pool's template."""
    from prefect.utilities.templating import apply_values

    variables = template(kind)["variables"]["properties"]
    values = {
        name: variable["default"] for name, variable in variables.items() if "default" in variable
    }
    configuration = apply_values(
        template(kind)["job_configuration"], values | row["work_pool"].get("job_variables", {})
    )
    assert isinstance(configuration, dict)
    return configuration


@pytest.mark.parametrize("kind", KINDS)
def test_each_file_deploys_every_flow_with_every_profile(kind: str) -> None:
    from prefect.flows import load_flow_from_entrypoint

    rows = deployments(kind)
    found = {
        (load_flow_from_entrypoint(row["entrypoint"]).name, row["name"]): row.get("parameters", {})
        for row in rows
    }
    stages = [name for flow, name in found if flow == "run-stage"]
    wanted = {
        (f"reproduce-{flow}", name): given for flow in FLOWS for name, given in PARAMETERS.items()
    }
    assert len(rows) == len(found), f"{KINDS[kind]} names a deployment twice"
    assert {key: given for key, given in found.items() if key[1] not in stages} == (
        {} if kind == "slurm" else wanted
    ), (
        f"{KINDS[kind]}: what differs from prefect.yaml's flows, deployments or parameters goes"
        " into all three files"
    )
    assert len(stages) == STAGES[kind]


def test_stages_sent_to_a_pool_find_a_queue_that_sender_looks_at() -> None:
    """flows/remote.py sends what trains to `gpu`, or else `cpu`, and the rest to `cpu`; or what is of a queue's own group there."""
    for kind in POOLED:
        rows = [row for row in deployments(kind) if row["entrypoint"] == "flows.remote.run_stage"]
        queues = {row["name"]: row["work_pool"]["work_queue_name"] for row in rows}
        assert set(queues.values()) == (
            {"cpu"} if kind == "docker" else {"pretrain", "gpu", "cpu"}
        ), queues


def test_a_stage_on_slurm_has_the_gpus_of_its_queue() -> None:
    for row in deployments("slurm"):
        run = job(row, "slurm")
        command = run["command"].replace("{{ name }}", "finetune@cola")
        assert "{{" not in command
        assert command.startswith("sh flows/slurm/job.sh --job-name=")
        gpus = [word for word in command.split() if word.startswith("--gpus")]
        wanted = {"pretrain": ["--gpus=8"], "gpu": ["--gpus=1"], "cpu": []}
        assert gpus == wanted[row["work_pool"]["work_queue_name"]]
        assert run["working_dir"] == ".", "the clone in which the worker was started"


@pytest.mark.parametrize("profile", PROFILES)
def test_every_stage_s_job_has_a_name_that_kubernetes_allows(profile: str) -> None:
    """A label of RFC 1123 once Kubernetes has put five letters of its own behind; Prefect's worker
    makes metadata.generateName of the name that it is given as it is.
    """
    from flows.remote import job_name
    from gpt1.params.profile import compose
    from gpt1.pipeline.graph import expand

    manifest = template("kubernetes")["job_configuration"]["job_manifest"]
    pattern = manifest["metadata"]["generateName"]
    names = {
        name: pattern.replace("{{ name }}", job_name(stage)) + "abcde"
        for name, stage in expand(compose(profile, ())).items()
    }
    assert names
    for name, called in names.items():
        assert re.fullmatch("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", called), f"{name}: {called}"


def test_a_flow_offers_each_profile_of_conf_and_each_task() -> None:
    """What Prefect's server holds parameters to, and shows as a list."""
    from flows.reproduce import reproduce_table2
    from gpt1.tasks.table import TASKS

    offered = reproduce_table2.parameters.model_dump()["properties"]
    assert offered["profile"]["anyOf"][0]["enum"] == PROFILES
    assert offered["tasks"]["anyOf"][0]["items"]["enum"] == sorted(TASKS)


def test_a_profile_of_ones_own_is_deployed_anew(tmp_path: Path) -> None:
    from flows.service.server import deployed_mark

    (tmp_path / "conf").mkdir()
    (tmp_path / "prefect.yaml").touch()
    before = deployed_mark(tmp_path, "")
    (tmp_path / "conf/mine.yaml").touch()
    assert deployed_mark(tmp_path, "") != before


@pytest.mark.parametrize("kind", KINDS)
def test_no_deployment_holds_a_path_of_the_machine_that_made_it(kind: str) -> None:
    for row in deployments(kind):
        assert find_spec(row["entrypoint"].rpartition(".")[0]), (
            f"{row['entrypoint']} is no function of a module: flows.reproduce.…"
        )
        command = str(job(row, kind).get("command"))
        own_engine = "flows.engine" in command or "flows/slurm/job.sh" in command
        assert row["pull"] or own_engine, (
            f"{KINDS[kind]}: without a pull step a run is of the deploying folder, with [] of a copy"
        )
        named = set(re.findall(r"'directory': '(/[^']*)'", str(row["pull"])))
        assert named == ({"/project"} if kind in ("docker", "kubernetes") else set()), (
            f"{KINDS[kind]}: a run of {row['name']} would work in {named}"
        )


@pytest.mark.parametrize("kind", KINDS)
def test_job_variables_are_those_that_the_pool_knows(kind: str) -> None:
    from prefect.utilities.schema_tools import validate

    variables = template(kind)["variables"]
    for row in deployments(kind):
        given = row["work_pool"].get("job_variables", {})
        assert set(given) <= set(variables["properties"]), (
            f"{KINDS[kind]}: the pool's template knows {sorted(variables['properties'])}"
        )
        validate(given, variables, raise_on_error=True)


def test_each_kind_has_its_pool() -> None:
    pools = {kind: {row["work_pool"]["name"] for row in deployments(kind)} for kind in KINDS}
    assert pools == {
        "process": {"gpt1"},
        "docker": {"gpt1-docker"},
        "kubernetes": {"gpt1-kubernetes"},
        "slurm": {"gpt1-slurm"},
    }


def test_a_container_has_gpus_shared_memory_and_the_clone() -> None:
    for row in deployments("docker"):
        run = job(row, "docker")
        assert run["volumes"] == [".:/project"]
        assert run["container_create_kwargs"]["device_requests"] == [
            {"driver": "nvidia", "count": -1, "capabilities": [["gpu"]]}
        ]
        assert run["container_create_kwargs"]["shm_size"] == "8g"


def test_kubernetes_own_schemas_take_every_file() -> None:
    """Strictly: no unknown field. The two that Prefect's worker wants in a pod's specification, where Kubernetes knows none, are left out."""
    reason = "pip install kubernetes-validate==1.37.0, of 11 MB, brings the schemas"
    schemas = pytest.importorskip("kubernetes_validate", reason=reason)
    files = [KINDS["kubernetes"].parent / "cluster.yaml"]
    manifests = [one for path in files for one in yaml.safe_load_all(path.read_text())]
    for row in deployments("kubernetes"):
        run = job(row, "kubernetes")["job_manifest"]
        pod = run["spec"]["template"]["spec"]
        del pod["parallelism"], pod["completions"]
        pod["containers"][0]["args"] = ["python"]  # the worker's to fill, as labels are
        run["metadata"] = {"generateName": "run-"}
        manifests.append(run)
    for manifest in manifests:
        schemas.validate(manifest, schemas.latest_version(), strict=True)


def test_a_pod_has_gpus_shared_memory_and_the_clone() -> None:
    for row in deployments("kubernetes"):
        run = job(row, "kubernetes")["job_manifest"]
        assert "{{" not in json.dumps(run).replace("{{ name }}", "").replace("{{ command }}", ""), (
            "a placeholder without a variable"
        )
        pod = run["spec"]["template"]["spec"]
        container = pod["containers"][0]
        assert container["resources"]["limits"] == {
            "cpu": "64" if row["name"] == "stage-pretrain" else "8",
            "memory": "256Gi" if row["name"] == "stage-pretrain" else "64Gi",
            "nvidia.com/gpu": {"stage-pretrain": "8", "stage-cpu": "0"}.get(row["name"], "1"),
        }
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
        assert mounts["/dev/shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "8Gi"}
        expected = (
            "emptyDir" if row["name"].startswith("stage") else "persistentVolumeClaim"
        )  # two pods cannot lock one clone against each other
        assert expected in mounts["/project"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert (pod["parallelism"], pod["completions"], pod["restartPolicy"]) == (
            1,
            1,
            "Never",
        ), "Prefect's worker refuses a job without"


@pytest.mark.parametrize("kind", TEMPLATES)
def test_every_variable_of_a_job_template_is_used(kind: str) -> None:
    used = set(re.findall(r"\{\{ (\w+) \}\}", TEMPLATES[kind].read_text(encoding="utf-8")))
    assert used == set(template(kind)["variables"]["properties"]), (
        f"{TEMPLATES[kind]}: a variable without use, or a use without variable"
    )


def test_everything_names_one_image() -> None:
    pattern = r"\bgpt1:\d[\w.]+"
    files = [
        DOCKERFILE,
        KINDS["docker"],
        KINDS["kubernetes"],
        TEMPLATES["docker"],
        TEMPLATES["kubernetes"],
        ROOT / "flows/kubernetes/cluster.yaml",
        ROOT / "docs/machines.md",
        ROOT / "docs/lab.md",
        ROOT / "compose.yaml",
    ]
    found = {
        str(path.relative_to(ROOT)): set(re.findall(pattern, path.read_text(encoding="utf-8")))
        for path in files
    }
    version = re.search(
        r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert version
    assert all(tags == {f"gpt1:{version[1]}"} for tags in found.values()), (
        f"expected the version of pyproject.toml everywhere: {found}"
    )


def test_the_image_takes_from_the_folder_only_what_git_and_pip_need() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*", (
        "first leave out everything: .env, data and .dvc/config.local are not for an image"
    )
    assert {rule for rule in rules if rule.startswith("!")} == {
        "!.git",
        "!constraints.txt",
        "!pyproject.toml",
    }
    copied = re.findall(r"^COPY (.+) \./$", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert copied == [
        "constraints.txt",
        "pyproject.toml",
    ], "the code comes from .git; anything else copied before pip installs anew"


def test_a_cluster_lets_nobody_in() -> None:
    text = (ROOT / "flows/kubernetes/cluster.yaml").read_text(encoding="utf-8")
    assert not re.search(r"NodePort|LoadBalancer|kind: Ingress\b|hostNetwork", text), (
        "Prefect's server asks for no password"
    )


def test_a_labs_server_shows_its_passwords_to_nobody_and_listens_to_this_machine() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert {"database", "prefect", "mlflow", "worker"} == set(services)
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    plain = [
        name
        for service in services.values()
        for name, value in service.get("environment", {}).items()
        if re.search(r"PASSWORD|AUTH|SECRET|TOKEN", name) and not value.startswith("/run/secrets/")
    ]
    assert plain == []
    assert not re.search(r"://[^/@\s]*:[^/@\s]*@", str(services)), "a password in an address"
    for rules in (".gitignore", ".dockerignore"):
        lines = (ROOT / rules).read_text(encoding="utf-8").splitlines()
        assert {"/.lab/", "*"} & set(lines), f"{rules} lets .lab in"


@pytest.mark.skipif(
    not shutil.which("docker-compose"), reason="no docker-compose here (Debian has it)"
)
def test_compose_takes_a_labs_server(tmp_path: Path) -> None:
    for name in ("compose.yaml", "flows/docker/compose.gpu.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".lab").mkdir()
    for name in ("prefect.env", "pgpass", "database-password"):
        (tmp_path / ".lab" / name).touch()
    files = ["-f", "compose.yaml", "-f", "flows/docker/compose.gpu.yaml"]
    done = subprocess.run(
        ["docker-compose", *files, "config", "--quiet"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_guide_names_what_is_there() -> None:
    pages = [ROOT / "docs/machines.md", ROOT / "docs/lab.md"]
    guide = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    targets = set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    commands = "\n".join(re.findall(r"```.*?\n(.*?)```", guide, re.DOTALL))
    assert set(re.findall(r"\bmake ([a-z-]+)", guide)) <= targets
    for name in re.findall(r"\]\(([^)#:]+)\)", guide):
        assert (ROOT / "docs" / name).exists(), f"a page links {name}, which is not there"
    for name in re.findall(r"(?:flows|data|conf)/[\w/.-]+\.\w+|flows/docker/Dockerfile", commands):
        assert (ROOT / name).exists(), f"a page names {name}, which is not there"
    for flow, deployment in re.findall(r"prefect deployment run (reproduce-\w+)/?(\w*)", guide):
        assert flow.removeprefix("reproduce-") in FLOWS
        assert not deployment or deployment in PARAMETERS
