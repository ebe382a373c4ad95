"""Prefect's plug-in hook (prefect.toml switches it on): where its server is, and
`prefect deployment run reproduce-table2`, a bare name that finds its deployment.

The address of `make serve` is meant where no setting, and no profile of the user's, names another.
For the names it wraps two public methods of Prefect's client, for that one command. A mistake in a
name of ours, a server that does not answer and a pool without a worker are one line each;
everything else is as Prefect has it.
"""

import difflib
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, NoReturn

from prefect.plugins import HookContext, SetupResult, register_hook

from gpt1.base.errors import USER_ERROR_STATUS

ADDRESS = "http://127.0.0.1:4200/api"
POOL = "gpt1"
PREFIX = "reproduce-"
BARE = "checkout"  # the deployment that a flow's bare name means
START = "start it with: make serve"

Method = Callable[..., Awaitable[Any]]


@register_hook
def setup_environment(*, ctx: HookContext) -> SetupResult | None:
    """Prefect calls this whenever it is imported in the checkout. The client is changed only where
    a run is being asked for.
    """
    if asks_for_a_run(sys.argv[1:]):
        take_bare_names()
    return None if ctx.api_url else SetupResult(env={"PREFECT_API_URL": ADDRESS})


def take_bare_names() -> None:
    """Wrap the methods of Prefect's client."""
    from prefect.client.orchestration import PrefectClient

    for name, wrapped in (
        ("read_deployment_by_name", finding),
        ("create_flow_run_from_deployment", noting_idle_pool),
    ):
        if method := getattr(
            PrefectClient, name, None
        ):  # where it goes by another name one day, names with a slash still work
            setattr(PrefectClient, name, wrapped(method))


def asks_for_a_run(words: Sequence[str]) -> bool:
    """Whether a command line is that of `prefect deployment run`."""
    return any(
        first in ("deployment", "deployments") and second == "run"
        for first, second in pairwise(words)
    )


def full_name(name: str) -> str:
    """The deployment that is meant: reproduce-table2/checkout where reproduce-table2 is said."""
    return name if "/" in name else f"{name}/{BARE}"


def nearest(name: str, known: Sequence[str]) -> str:
    """What a person can do about a name that is not there: up to three that are like it, else all
    bare names.
    """
    bare = sorted(one.removesuffix(f"/{BARE}") for one in known if one.endswith(f"/{BARE}"))
    near = difflib.get_close_matches(name, [*bare, *known], 3, 0.75)
    return f"did you mean {' or '.join(near)}?" if near else f"expected one of {', '.join(bare)}"


def finding(read: Method) -> Method:
    """`read_deployment_by_name`, which takes bare names too, and ends with one line where a name of
    ours is not there.
    """

    async def read_deployment_by_name(self: Any, name: str) -> Any:
        import httpx
        from prefect.exceptions import ObjectNotFound

        if "/" in name and not name.startswith(PREFIX):
            return await read(self, name)
        try:
            await warn_of_other_version(self)
            return await read(self, full_name(name))
        except (httpx.HTTPError, ValueError):  # nothing, or something that is no Prefect
            give_up(
                f"no Prefect server answers at {address(self)}; {START}, or set PREFECT_API_URL in"
                " .env to where one runs"
            )
        except ObjectNotFound:
            known = await deployments(self)
            give_up(
                f"no deployment {name!r} at {address(self)}; "
                + (nearest(name, known) if known else f"none of ours is there; {START}")
            )

    return read_deployment_by_name


def noting_idle_pool(create: Method) -> Method:
    """`create_flow_run_from_deployment`, which says so where no worker is there to take the run."""

    async def create_flow_run_from_deployment(self: Any, *arguments: Any, **named: Any) -> Any:
        run = await create(self, *arguments, **named)
        with suppress(Exception):  # the run is made; this is only a hint
            if run.work_pool_name == POOL and not await online_workers(self):
                print(
                    "warning: no worker is there, and nothing will run until one is started: make"
                    " serve, or make worker beside a server",
                    file=sys.stderr,
                )
        return run

    return create_flow_run_from_deployment


async def online_workers(client: Any) -> list[Any]:
    """The workers of our pool that are alive, as the server has it."""
    from prefect.client.schemas.filters import WorkerFilter

    return list(
        await client.read_workers_for_work_pool(
            POOL, worker_filter=WorkerFilter.model_validate({"status": {"any_": ["ONLINE"]}})
        )
    )


async def deployments(client: Any) -> list[str]:
    """The names of the deployments of our flows, as flow/deployment."""
    from prefect.client.schemas.filters import FlowFilter

    flows = {
        flow.id: flow.name
        for flow in await client.read_flows(
            flow_filter=FlowFilter.model_validate({"name": {"like_": PREFIX}})
        )
    }
    return [
        f"{flows[found.flow_id]}/{found.name}"
        for found in await client.read_deployments(limit=200)
        if found.flow_id in flows
    ]


async def warn_of_other_version(client: Any) -> None:
    """One line where the server is of another version than this Prefect."""
    from prefect.client.base import ServerType

    if client.server_type is not ServerType.CLOUD:  # it is compatible with any
        warn_of_version(await client.api_version(), address(client))


def warn_of_version(theirs: str | None, where: str) -> None:
    """One line where a server's version is another than that of this Prefect."""
    import prefect

    if theirs not in (None, prefect.__version__):
        print(
            f"warning: the Prefect server at {where} is of version {theirs}, this is"
            f" {prefect.__version__}: where one of them does not know what the other wants, install"
            " the same on both",
            file=sys.stderr,
            flush=True,
        )


def address(client: Any) -> str:
    """Where the server is, as people write it."""
    return str(client.api_url).rstrip("/")


def give_up(problem: str) -> NoReturn:
    """End the command with one line."""
    print(f"error: {problem}", file=sys.stderr)
    raise SystemExit(USER_ERROR_STATUS)
