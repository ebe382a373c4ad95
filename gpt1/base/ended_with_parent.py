"""A fork server that imports this ends with its parent, and so do its forks. Linux only."""

import os
import signal
from functools import partial

from gpt1.base.interrupts import end_with_parent

_end = partial(end_with_parent, signal.SIGKILL)
_end()
os.register_at_fork(after_in_child=_end)  # a fork does not inherit it
