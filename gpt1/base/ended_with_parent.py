"""To be imported by a helper process, a fork server: it and all that it forks are killed when their
parent ends, even by SIGKILL. On Linux; elsewhere nothing happens.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def _ask_for_the_signal() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


_ask_for_the_signal()
os.register_at_fork(after_in_child=_ask_for_the_signal)  # a fork does not inherit it
