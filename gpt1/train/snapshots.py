"""Snapshots of a network's weights along its pre-training (paper, Figure 2, right): outputs, so
none may be missing in the end.
"""

import sys
from pathlib import Path

from torch import Tensor

from gpt1.model.lstm import Network
from gpt1.model.weights import Description, save_state


class Snapshots:
    """Writes weights under `folder`; those for which the disk has no room wait in memory."""

    def __init__(self, folder: Path, description: Description) -> None:
        self.folder, self.description = folder, description
        self.waiting: dict[Path, dict[str, Tensor]] = {}

    def take(self, update: int, network: Network) -> None:
        """Write the network's weights as they are after `update`."""
        path = self.folder / f"{update:08d}.safetensors"
        self.waiting[path] = network.state_dict()
        try:
            self.write()
        except OSError as error:
            self.waiting[path] = {
                name: tensor.cpu().clone() for name, tensor in network.state_dict().items()
            }
            print(
                f"{path} cannot be written ({error.strerror}): it waits in memory, training"
                " goes on",
                file=sys.stderr,
                flush=True,
            )

    def write(self) -> None:
        """Put on disk what waits. Raises OSError where that cannot be."""
        for path, weights in list(self.waiting.items()):
            save_state(path, weights, self.description)
            del self.waiting[path]
