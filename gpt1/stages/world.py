"""`world`: write a made-up town as books and official task files, data/world/<name>/<source>. It is
the default for users without data.
"""

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder, writing_folder
from gpt1.demo.files import write_world
from gpt1.params.schema import read_params


def main(name: str) -> None:
    """Write one world of params.yaml."""
    params = read_params()
    if name not in params.world:
        raise UserError(
            f"expected one of the worlds in params.yaml ({', '.join(params.world) or 'none'});"
            f" found {name}"
        )
    row = params.world[name]
    with writing_folder(stage_folder("world", name)) as folder:
        write_world(folder, row.seed, row.books, row.pages)
