"""Ctrl-C within a block that must not be cut in two."""

import os
import signal
import threading
import time

import pytest

from gpt1.base.interrupts import interrupts_held


def send_interrupt() -> None:
    """As a terminal does: to the process, whichever of its threads takes it."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05)


def interrupted_twice(done: list[str]) -> None:
    with interrupts_held():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        send_interrupt()
        done.append("masked")
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        send_interrupt()
        done.append("whole")


def test_an_interrupt_comes_after_the_block_whichever_thread_takes_it() -> None:
    ended = threading.Event()
    done: list[str] = []
    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted_twice(done)
    finally:
        ended.set()
        thread.join()
    assert done == ["masked", "whole"]
    with pytest.raises(KeyboardInterrupt):
        send_interrupt()


def interrupted_and_wrong() -> None:
    with interrupts_held():
        send_interrupt()
        raise ValueError("mine")


def test_an_ignored_interrupt_stays_ignored_and_an_error_goes_on() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(ValueError, match="mine"):
            interrupted_and_wrong()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_do_not_touch_it() -> None:
    found = []

    def held() -> None:
        with interrupts_held():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=held)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]
