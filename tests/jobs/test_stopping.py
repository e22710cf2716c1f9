from elmore.jobs.stopping import StoppedError, resume_hint


def test_a_command_with_restart_resumes_without_it():
    assert resume_hint() == "rerun the same command to resume"
    assert resume_hint(restart=True) == "rerun the same command without --restart to resume"


def test_a_stop_names_its_step_and_how_to_resume():
    stop = StoppedError(step=3, signal_number=2)
    assert str(stop) == "stopped after step 3; rerun the same command to resume"
    assert (stop.step, stop.signal_number) == (3, 2)
