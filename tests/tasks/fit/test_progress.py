from elmore.tasks.fit.progress import EpochResult, FitProgress


def test_progress_survives_json():
    result = EpochResult(epoch=1, step=4, loss=0.5, dev=70.0, seconds=1.5)
    progress = FitProgress(step=6, epoch=1, epoch_step=2, best_score=70.0, curve=[result])
    assert FitProgress.from_json(progress.to_json()) == progress


def test_older_checkpoints_call_the_step_of_an_epoch_its_place():
    values = FitProgress(step=6, epoch=1, epoch_step=2).to_json()
    values["place"] = values.pop("epoch_step")
    assert FitProgress.from_json(values).epoch_step == 2
