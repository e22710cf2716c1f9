import importlib
import sys

import pytest

from elmore import compat
from elmore.compat.allennlp.modules.elmo import Elmo
from elmore.compat.old_imports import OldImports
from tests.compat.installed import installed as installed_modules


@pytest.fixture(name="installed")
def make_installed():
    with installed_modules() as names:
        yield names


def run(line):
    names = {}
    exec(line, names)
    return names


def test_old_names_are_elmores_own(installed):
    assert installed == ["allennlp", "bilm", "elmoformanylangs", "simple_elmo"]
    names = run("from allennlp.modules.elmo import Elmo, batch_to_ids, _ElmoBiLm")
    assert names["Elmo"] is Elmo
    for line in (
        "from allennlp.commands.elmo import ElmoEmbedder",
        "from allennlp.commands import elmo; elmo.ElmoEmbedder",
        "import allennlp.commands.elmo as e; e.DEFAULT_OPTIONS_FILE",
        "import allennlp; allennlp.modules.scalar_mix.ScalarMix",
        "from allennlp.modules import Elmo, ScalarMix",
        "from allennlp.common.checks import ConfigurationError",
        "from allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper",
        "from allennlp.nn.util import remove_sentence_boundaries",
        "from elmoformanylangs import Embedder",
        "from simple_elmo import ElmoModel",
        "from bilm import *; Batcher, TokenBatcher, weight_layers, dump_bilm_embeddings",
        "from bilm.model import BidirectionalLanguageModel, dump_token_embeddings",
        "from bilm.data import Batcher; from bilm.elmo import weight_layers",
        "from elmoformanylangs.elmo import Embedder",
        "from simple_elmo.elmo_helpers import ElmoModel",
    ):
        run(line)


@pytest.mark.parametrize(
    ("line", "listed"),
    [
        ("import allennlp.training", "allennlp.commands.elmo.ElmoEmbedder"),
        ("from allennlp.modules.elmo import Nothing", "allennlp.modules.elmo.batch_to_ids"),
        ("from allennlp.modules import FeedForward", "allennlp.modules.Elmo"),
        ("from bilm.training import train", "bilm.dump_token_embeddings"),
        ("from simple_elmo import Nothing", "simple_elmo.ElmoModel"),
    ],
)
def test_a_name_that_is_not_provided_lists_those_that_are(installed, line, listed):
    with pytest.raises(ImportError, match=r"elmore provides no") as error:
        run(line)
    assert listed in str(error.value)


def test_a_missing_attribute_of_the_module_itself_is_an_ordinary_error(installed):
    import allennlp  # noqa: PLC0415

    assert allennlp.__version__ == "0.9.0"
    assert not hasattr(allennlp, "__nothing__")
    assert allennlp.__path__ == []


def test_one_line_says_what_happens_and_only_once(installed, capsys):
    assert compat.install() == []
    assert capsys.readouterr().err == ""
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, OldImports)]
    compat.install()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("elmore.compat: ")
    assert "allennlp, bilm, elmoformanylangs, simple_elmo" in line


def test_a_real_installation_wins(tmp_path, monkeypatch):
    (tmp_path / "bilm.py").write_text("real = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    importlib.invalidate_caches()
    assert "bilm" not in compat.install()
    assert run("import bilm")["bilm"].real
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        run("import bilm.training")
    del sys.modules["bilm"]


def test_a_library_that_the_program_adds_to_the_path_wins(installed, tmp_path, monkeypatch):
    (tmp_path / "bilm").mkdir()
    (tmp_path / "bilm" / "__init__.py").write_text("real = True\n")
    (tmp_path / "bilm" / "training.py").write_text("train = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert run("import bilm.training")["bilm"].training.train == 3
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'bilm\.data'"):
        run("import bilm.data")


def test_a_folder_that_has_the_name_of_a_library_is_not_the_library(tmp_path, monkeypatch):
    for name in ("allennlp", "bilm"):
        (tmp_path / name).mkdir()  # of weights, or a clone, in which the library is one level lower
        (tmp_path / name / "options.json").write_text("{}")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    with installed_modules() as names:
        assert {"allennlp", "bilm"} <= set(names)
        assert run("from allennlp.modules.elmo import Elmo")["Elmo"] is Elmo
        run("from bilm import Batcher")
