"""Signals during training: the first is noted, the second acts."""

import signal
import threading

import pytest

from lamperti.train.interrupts import Interrupts


def test_the_first_ctrl_c_is_noted_and_the_second_raised():
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        assert interrupts.asked == "interrupted"
        signal.raise_signal(signal.SIGINT)


def test_a_request_to_end_is_noted_and_the_handlers_come_back():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        assert interrupts.asked is None
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.asked == "terminated"
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
        assert interrupts.asked is None
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_train_without_watching_signals():
    seen = []

    def watch():
        with Interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=watch)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
