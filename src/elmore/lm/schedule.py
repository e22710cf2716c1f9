"""The learning rate schedule: linear warm-up, constant, linear decay."""

from elmore.lm.settings import OptimizerSettings


def find_learning_rate(settings: OptimizerSettings, step: int, *, num_steps: int) -> float:
    """Return the learning rate of a step, counted from 0.

    >>> settings = OptimizerSettings(
    ...     learning_rate=1.0, warmup_steps=2, decay_steps=4, final_share=0.0
    ... )
    >>> [find_learning_rate(settings, step, num_steps=10) for step in range(10)]
    [0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    warmup_steps = min(settings.warmup_steps, num_steps // 4)
    if step < warmup_steps:
        return settings.learning_rate * (step + 1) / warmup_steps
    decay_steps = num_steps - warmup_steps
    if settings.decay_steps is not None:
        decay_steps = min(settings.decay_steps, decay_steps)
    decayed = min(1.0, max(0, step - (num_steps - decay_steps)) / max(1, decay_steps))
    return settings.learning_rate * (1.0 - decayed * (1.0 - settings.final_share))


def has_same_learning_rates(
    before: OptimizerSettings,
    now: OptimizerSettings,
    *,
    num_steps_before: int,
    num_steps_now: int,
    num_done: int,
) -> bool:
    """Return whether both settings give the completed steps the same learning rates."""
    return all(
        find_learning_rate(before, step, num_steps=num_steps_before)
        == find_learning_rate(now, step, num_steps=num_steps_now)
        for step in range(num_done)
    )
