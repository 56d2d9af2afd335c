import pytest

from dashboard.runs.models import State
from trainer.ends import Exit
from workers.verdict import Verdict, judge, steps_done


def ended(rank, code=None, signal=None, step=7, by_host=False):
    return Exit(rank, code, signal, step, by_host)


def test_all_steps_done_is_finished():
    assert judge([ended(0, 0), ended(1, 0)], "").state == State.FINISHED


def test_a_stop_that_came_too_late_is_finished():
    assert judge([ended(0, 0), ended(1, 0)], "Stopped on request.").state == State.FINISHED


@pytest.mark.parametrize(("restarts", "reason"), [(0, ""), (1, "It had begun again once."), (3, "It had begun again 3 times.")])
def test_a_run_that_finished_says_how_often_it_had_begun_again(restarts, reason):
    assert judge([ended(0, 0), ended(1, 0)], "", restarts) == Verdict(State.FINISHED, reason)


def test_ranks_that_ended_early_on_request_are_stopped_with_the_reason():
    verdict = judge([ended(0, 10), ended(1, 10)], "Stopped on request.")
    assert (verdict.state, verdict.reason) == (State.STOPPED, "Stopped on request.")
    assert verdict.failure("tail") is None


def test_ranks_that_the_host_ended_are_no_fault_of_theirs():
    assert judge([ended(0, signal=15, by_host=True), ended(1, 1, by_host=True)], "Stopped on request.").state == State.STOPPED


def test_a_signal_is_the_cause_and_its_neighbours_errors_are_not():
    verdict = judge([ended(0, 1), ended(2, signal=9, step=14), ended(1, 1)], "")
    assert verdict.reason == "Rank 2 was killed by SIGKILL in step 14."
    assert verdict.failure("the log") == {"rank": 2, "exit_code": None, "signal": "SIGKILL", "log_tail": "the log"}


def test_among_errors_the_first_to_end_is_the_cause():
    verdict = judge([ended(3, 1, step=-1), ended(0, 1, step=-1)], "")
    assert verdict.reason == "Rank 3 ended with exit code 1 before its first step."
    assert verdict.failure("")["exit_code"] == 1


def test_a_rank_that_dies_while_a_stop_is_asked_for_fails_the_run():
    assert judge([ended(0, 10), ended(1, signal=11)], "Stopped on request.").state == State.FAILED


def test_a_signal_without_a_name_is_said_by_its_number():
    assert "signal 99" in judge([ended(0, signal=99)], "").reason


def test_a_step_counts_when_every_rank_has_done_it():
    assert steps_done([]) == 0
    assert steps_done([-1, 0]) == 0
    assert steps_done([4, 5]) == 4
    assert steps_done([30, 30]) == 30


def test_a_rank_that_saved_its_records_on_sigterm_was_killed_by_it():
    verdict = judge([ended(1, 1), ended(0, 143)], "")
    assert verdict.reason == "Rank 0 was killed by SIGTERM in step 7."


def test_who_waited_in_vain_is_not_to_blame_but_who_did_not_come():
    verdict = judge([ended(1, 1), ended(0, 11), ended(2, 143, step=5, by_host=True), ended(3, 11, by_host=True)], "")
    assert (verdict.state, verdict.rank) == (State.FAILED, 2)
    assert verdict.reason == (
        "Rank 2 did not come: it took part in nothing more in step 5, and rank 0 waited until its time-out.")


def test_when_all_have_waited_in_vain_nobody_is_named_as_missing():
    assert "so did they all" in judge([ended(1, 11), ended(0, 11)], "").reason


def test_a_run_that_fails_for_good_says_how_often_it_had_begun_again():
    assert judge([ended(2, signal=9)], "", restarts=2).reason.endswith("It had begun again 2 times before.")
