import os
import subprocess
import sys

import h5py
import pytest

from tests.compat.old_models import OldModel

pytestmark = pytest.mark.slow

MANY_LANGS_OPTIONS = ["--input", "in.txt", "--output_prefix", "out", "--output_layer", "0"]


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "elmore.compat", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_program_sees_its_arguments_and_its_folder(tmp_path):
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "helper.py").write_text("WORD = 'hello'\n")
    (tmp_path / "program" / "main.py").write_text(
        "import sys\nfrom helper import WORD\nfrom allennlp.modules.elmo import batch_to_ids\n"
        "print(__name__, sys.argv[1:], batch_to_ids([[WORD]]).shape)\n"
    )
    result = run("program/main.py", "--one", "two", cwd=tmp_path)
    assert result.stdout == "__main__ ['--one', 'two'] torch.Size([1, 1, 50])\n"
    assert len(result.stderr.splitlines()) == 1
    assert "elmore.compat" in result.stderr


def test_programs_for_bilm_tf_get_placeholders_and_sessions_and_others_do_not(tmp_path):
    (tmp_path / "main.py").write_text(
        "import tensorflow as tf\nfrom bilm import Batcher\n"
        "with tf.Session() as sess:\n    print(sess.run(tf.placeholder('int32')[1], {}))\n"
    )
    result = run("main.py", cwd=tmp_path)
    assert "simple_elmo, tensorflow" in result.stderr
    assert "no value was fed for the placeholder" in result.stderr
    (tmp_path / "main.py").write_text("from bilm import Batcher\nimport tensorflow.keras\n")
    assert "tensorflow.Session" in run("main.py", cwd=tmp_path).stderr
    (tmp_path / "main.py").write_text("import simple_elmo\nimport tensorflow\n")
    assert "No module named 'tensorflow'" in run("main.py", cwd=tmp_path).stderr


def test_a_copy_of_bilm_tf_in_the_folder_of_a_program_wins(tmp_path):
    (tmp_path / "program" / "bilm").mkdir(parents=True)
    (tmp_path / "program" / "bilm" / "__init__.py").write_text("import tensorflow\n")
    (tmp_path / "program" / "main.py").write_text("import bilm\n")
    result = run("program/main.py", cwd=tmp_path)
    assert "allennlp, elmoformanylangs, simple_elmo\n" in result.stderr
    assert "No module named 'tensorflow'" in result.stderr


def test_the_allennlp_command_in_both_its_forms(tmp_path):
    old = OldModel(tmp_path / "model")
    (tmp_path / "in.txt").write_text("a bank\n")
    options = ["--options-file", old.options, "--weight-file", old.weights]
    for command in (["allennlp"], ["-m", "allennlp.run"]):
        result = run(*command, "elmo", "in.txt", "out.h5", "--top", *options, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        with h5py.File(tmp_path / "out.h5") as file:
            assert file["0"].shape == (2, 10)
        (tmp_path / "out.h5").unlink()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "usage:"),
        (["-m"], "usage:"),
        (["nothing.py"], "there is no file nothing.py"),
        (["-m", "nothing"], "there is no module nothing"),
        (["-m", "elmoformanylangs.biLM", "train"], "it provides: elmoformanylangs.Embedder"),
        (["allennlp", "elmo", "in.txt", "out.h5", "--all"], "download https://"),
        (
            ["-m", "elmoformanylangs", "test", *MANY_LANGS_OPTIONS, "--model", "nothing"],
            "there is no model at 'nothing'",
        ),
        (
            ["allennlp", "elmo", "in.txt", "out.h5", "--all", "--batch-size", "0"],
            "expected a number of sentences from 1, got '0'",
        ),
        (
            ["allennlp", "elmo", "in.txt", "out.h5", "--all", "--cuda-device", "99"],
            "leave it out to use the CPU",
        ),
    ],
)
def test_mistakes_end_with_status_2_and_without_a_traceback(tmp_path, arguments, message):
    (tmp_path / "in.txt").write_text("a\n")
    result = run(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]
