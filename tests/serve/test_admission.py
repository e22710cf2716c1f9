"""One rule admits requests: an empty lane takes any, a busy one only what fits."""

import pytest

from elmore.serve.admission import LONG, SHORT, Admission
from elmore.serve.errors import RequestError
from elmore.serve.settings import Limits

LIMITS = Limits(max_queue_tokens=100, long_tokens=50, max_body_bytes=1000, max_bytes_received=1500)


@pytest.fixture
def admission():
    return Admission(LIMITS)


def enter(admission, num_tokens):
    ticket = admission.enter(0)
    ticket.move(num_tokens)
    return ticket


def test_an_empty_lane_takes_even_what_is_beyond_the_bound(admission):
    enter(admission, 5000)
    assert admission.loads[LONG].num_tokens == 5000


@pytest.mark.parametrize("sizes", [[100], [60, 40], [10] * 10])
def test_many_small_requests_and_one_large_one_are_counted_alike(sizes):
    admission = Admission(Limits(max_queue_tokens=100, long_tokens=1000))
    for size in sizes:
        enter(admission, size)
    with pytest.raises(RequestError) as refused:
        admission.check(1)
    assert refused.value.status == 429
    assert int(refused.value.headers["retry-after"]) >= 1


def test_long_requests_leave_room_for_short_ones(admission):
    enter(admission, 100)
    with pytest.raises(RequestError):
        enter(admission, 60)
    enter(admission, 40)


def test_a_refused_request_leaves_nothing_behind(admission):
    ticket = enter(admission, 100)
    with pytest.raises(RequestError):
        enter(admission, 60)
    assert admission.loads[LONG].num_tokens == 100
    ticket.leave()
    ticket.leave()
    assert [load.num_tokens for load in admission.loads.values()] == [0, 0]


def test_a_request_moves_to_its_lane_when_its_tokens_are_known(admission):
    ticket = admission.enter(50)
    assert admission.loads[SHORT].num_tokens == 10
    assert ticket.move(70) == LONG
    assert [admission.loads[name].num_tokens for name in (SHORT, LONG)] == [0, 70]
    assert ticket.move(3, lane=LONG) == LONG
    assert admission.loads[LONG].num_tokens == 3


def test_a_full_lane_refuses_by_the_length_of_the_body_alone(admission):
    enter(admission, 40)
    enter(admission, 40)
    with pytest.raises(RequestError, match="overloaded; try again in 1 s"):
        admission.check_arrival(200)
    admission.check_arrival(50)


def test_retry_after_follows_the_speed_of_the_lane(admission):
    enter(admission, 100)
    for _ in range(50):
        admission.note_speed(LONG, num_tokens=100, seconds=10)
    with pytest.raises(RequestError) as refused:
        admission.check(60)
    assert 9 <= int(refused.value.headers["retry-after"]) <= 12


def test_a_large_body_is_refused_while_it_arrives(admission):
    with admission.receiving() as received:
        received.add(600)
        with pytest.raises(RequestError) as refused:
            received.add(600)
    assert refused.value.status == 413
    assert admission.num_bytes == 0


def test_the_bytes_of_all_bodies_are_bounded(admission):
    with admission.receiving() as first, admission.receiving() as second:
        first.add(900)
        with pytest.raises(RequestError) as refused:
            second.add(700)
        assert refused.value.status == 429
        second.add(500)
    assert admission.num_bytes == 0
