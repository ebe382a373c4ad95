"""What the next update needs, read by a thread: in turn, ahead, and with its errors where they belong."""

import threading

import pytest
import torch

from gpt1.train.ahead import Ahead

CPU = torch.device("cpu")


@pytest.fixture
def ahead():
    """A reader of three updates that notes what it was asked for; it fails at the update `wrong`."""

    class Reader(Ahead):
        def __init__(self):
            self.asked, self.made, self.wrong = [], threading.Condition(), None
            super().__init__(self.read, CPU, 3)

        def read(self, update):
            with self.made:
                self.asked.append((update, threading.current_thread()))
                self.made.notify()
            if update == self.wrong:
                raise LookupError(f"update {update}")
            return f"batch {update}"

        def wait_for(self, count):
            with self.made:
                assert self.made.wait_for(lambda: len(self.asked) == count, timeout=10)

        def updates(self):
            return [update for update, _ in self.asked]

    reader = Reader()
    yield reader
    reader.close()


def test_the_next_update_is_read_by_a_thread_while_one_is_at_work(ahead):
    assert ahead.take(1) == "batch 1"
    ahead.wait_for(2)
    assert ahead.updates() == [1, 2]
    assert all(thread is not threading.main_thread() for _, thread in ahead.asked)
    assert [ahead.take(update) for update in (2, 3)] == ["batch 2", "batch 3"]
    assert ahead.updates() == [1, 2, 3], "nothing is read twice, or beyond the last update"


def test_a_run_may_go_on_anywhere_and_read_anew(ahead):
    assert ahead.take(2) == "batch 2"
    ahead.wait_for(2)
    ahead.drop()
    assert ahead.take(2) == "batch 2"
    ahead.close()
    assert ahead.updates() == [2, 3, 2, 3]


def test_what_cannot_be_read_ends_its_own_update_only(ahead):
    ahead.wrong = 2
    assert ahead.take(1) == "batch 1"
    with pytest.raises(LookupError, match="update 2"):
        ahead.take(2)
