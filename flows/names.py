"""This folder's name on Prefect's pages, and a plug-in (see prefect.toml) that leads `prefect
deployment` and `prefect flow-run` to this folder's server.
"""

import re
import sys
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from prefect.plugins import HookContext, SetupResult, register_hook

from gpt1.base.files import fingerprint
from gpt1.base.locks import server_address


def deployment_name() -> str:
    """Return the name of this folder's deployments and the tag of its runs."""
    folder = Path.cwd()
    return f"{re.sub(r'[^a-zA-Z0-9_.-]+', '-', folder.name)}-{fingerprint(str(folder))[:6]}"


@register_hook
def setup_environment(*, ctx: HookContext) -> SetupResult | None:
    """Set Prefect up, at every start of it in the checkout."""
    if sys.argv[1:2] not in (["deployment"], ["flow-run"]) or "--help" in sys.argv:
        return None
    if not (url := ctx.api_url or server_address("prefect")):
        sys.exit("error: no Prefect server is at work for this folder: make serve starts one")
    try:
        urllib.request.urlopen(f"{url}/health", timeout=5).close()
    except HTTPError:
        pass  # a server that wants a password: Prefect sends it
    except OSError as error:
        sys.exit(f"error: no Prefect server answers at {url} ({error}): make serve starts one")
    from prefect.client.orchestration import PrefectClient
    from prefect.exceptions import ObjectNotFound

    read = PrefectClient.read_deployment_by_name

    async def by_bare_name(client: PrefectClient, name: str) -> Any:
        full = name if "/" in name else f"{name}/{deployment_name()}"
        try:
            return await read(client, full)
        except ObjectNotFound:
            sys.exit(f"error: {full} is no deployment at {url}: make serve in this folder makes it")

    PrefectClient.read_deployment_by_name = by_bare_name  # type: ignore[method-assign,assignment]
    return None if ctx.api_url else SetupResult(env={"PREFECT_API_URL": url})
