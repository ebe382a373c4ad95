"""Whose word counts for where Prefect's server is: the user's, by the real `prefect` command line."""

import os
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

ROOT = Path(__file__).parents[1]
THEIRS = "https://127.0.0.1:9/api"  # nothing answers, and we start no server there
PROFILES = f"""
active = "work"
[profiles.work]
PREFECT_API_URL = "{THEIRS}"
[profiles.other]
PREFECT_API_URL = "http://127.0.0.1:9/other/api"
[profiles.bare]
"""


def call(folder, *words, **variables):
    """A command in a folder with our prefect.toml, by a user whose Prefect is under `home`."""
    shutil.copy(ROOT / "prefect.toml", folder)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PREFECT")}
    (folder / "home").mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=kept
        | {"PYTHONPATH": str(ROOT), "PREFECT_HOME": str(folder / "home"), "COLUMNS": "300"}
        | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.slow
def test_a_run_is_asked_for_where_the_user_says(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/profiles.toml").write_text(PROFILES)
    asked = call(tmp_path, "prefect", "deployment", "run", "reproduce-table2")
    assert f"no Prefect server answers at {THEIRS}" in asked.stderr
    assert asked.stderr.count("\n") == 1


@pytest.mark.slow
def test_no_server_is_started_in_silence(tmp_path):
    """Even where our plug-in is switched off, so that no address is known."""
    asked = call(tmp_path, "prefect", "flow-run", "ls", PREFECT_PLUGINS_ENABLED="false")
    assert asked.returncode
    assert "PREFECT_API_URL" in asked.stdout + asked.stderr
    assert not list((tmp_path / "home").glob("*.db"))


@pytest.mark.slow
def test_a_page_on_a_named_port_is_never_taken_for_prefects(tmp_path):
    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"true")

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as page:
        Thread(target=page.serve_forever, daemon=True).start()
        api = f"http://127.0.0.1:{page.server_port}/api"
        said = call(tmp_path, "flows.serve", GPT1_MLFLOW="off", PREFECT_API_URL=api).stderr
        page.shutdown()
    assert said.startswith(f"error: prefect did not start on port {page.server_port} of 127.0.0.1")
    assert said.count("\n") == 1
