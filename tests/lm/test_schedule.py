import pytest

from elmore.errors import ConfigError
from elmore.lm.schedule import find_learning_rate, has_same_learning_rates
from elmore.lm.settings import OptimizerSettings


def rates(num_steps: int, **settings) -> list[float]:
    settings = OptimizerSettings(learning_rate=1.0, **settings)
    return [find_learning_rate(settings, step, num_steps=num_steps) for step in range(num_steps)]


def test_without_a_number_the_rate_falls_from_the_warm_up_on():
    assert rates(8, warmup_steps=2, final_share=0.4) == pytest.approx(
        [0.5, 1.0, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5]
    )


def test_a_fall_longer_than_the_run_starts_after_the_warm_up():
    assert rates(8, warmup_steps=2, final_share=0.4, decay_steps=100) == rates(
        8, warmup_steps=2, final_share=0.4
    )


def test_no_steps_of_decay_keep_the_rate():
    assert rates(6, warmup_steps=0, final_share=0.1, decay_steps=0) == [1.0] * 6


@pytest.mark.parametrize(("num_done", "is_same"), [(6, True), (7, True), (8, False)])
def test_courses_are_the_same_up_to_the_first_other_rate(num_done, is_same):
    settings = OptimizerSettings(warmup_steps=0, decay_steps=4, final_share=0.0)
    answer = has_same_learning_rates(
        settings, settings, num_steps_before=10, num_steps_now=20, num_done=num_done
    )
    assert answer is is_same  # step 6 is the first of the fall, and still has the whole rate


def test_decay_steps_must_be_a_count():
    with pytest.raises(ConfigError, match="decay_steps"):
        OptimizerSettings(decay_steps=-1)
