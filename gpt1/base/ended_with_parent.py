"""A helper process (a fork server) imports this; then it and all its forks are killed when their
parent ends, even by SIGKILL. On Linux; elsewhere nothing happens.
"""

import os
import signal
from functools import partial

from gpt1.base.interrupts import end_with_parent

_end = partial(end_with_parent, signal.SIGKILL)
_end()
os.register_at_fork(after_in_child=_end)  # a fork does not inherit it
