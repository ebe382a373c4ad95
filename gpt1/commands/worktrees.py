"""`gpt1 worktrees`."""

from typing import Annotated

from gpt1.commands.options import option

EXAMPLES = """
Examples:

    gpt1 worktrees                          which there are, of what, their size and last use

    gpt1 worktrees --remove small-3f2a9c    this one

    gpt1 worktrees --remove all
"""


def worktrees(
    remove: Annotated[
        str | None,
        option(
            "Remove one of them, or `all`; finished results stay in DVC's cache.", metavar="NAME"
        ),
    ] = None,
) -> None:
    """List the worktrees in which flows ran a profile, overrides, seeds or tasks of their own,
    beside this folder as it is.
    """
    from gpt1.pipeline.worktrees import remove_worktrees, show_worktrees

    if remove is None:
        show_worktrees()
    else:
        remove_worktrees(remove)
