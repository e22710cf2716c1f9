"""What tests of fit, predict and compare share: a small task, and how a mistake is reported."""

SMALL = [
    f"--set={change}"
    for change in (
        "task.column=2",
        "task.hidden_dim=5",
        "words.dim=4",
        "characters.num_filters=3",
        "training.batch_size=10",
        "training.max_epochs=2",
        "training.min_epoch_steps=1",
    )
]


def assert_refused(result, *texts):
    """A mistake is one sentence on standard error, and exit status 2."""
    assert result.status == 2
    assert result.out == ""
    assert result.err.startswith("elmore: ")
    assert result.err.count("\n") == 1
    for text in texts:
        assert text in result.err
