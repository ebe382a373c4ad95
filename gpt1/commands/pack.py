"""`gpt1 pack`."""

from pathlib import Path
from typing import Annotated

from gpt1.commands.options import argument

EXAMPLES = """
Examples:

    gpt1 pack ~/gpt1-small                  the results of the run here, in a folder to give away

    gpt1 table table5 --run ~/gpt1-small    look at it, here or elsewhere

    gpt1 status --against ~/gpt1-small      which stages of the run here gave the same
"""


def pack(
    folder: Annotated[Path, argument("The folder to write; one that gpt1 pack wrote is replaced.")],
) -> None:
    """Put the results of the run into a folder of about a megabyte to give away: page, tables,
    every prediction, pictures, parameters, dvc.lock, machine and commit. Neither data nor weights.
    """
    from gpt1.results.pack import pack as write

    files = write(folder)["files"]
    total = sum((folder / name).stat().st_size for name in files)
    print(f"{folder}: {len(files)} files, {total / 1e6:.1f} MB; gpt1 table table5 --run {folder}")
