"""Models are named by the user, or after their path or hub id."""

import pytest

from elmore import ElmoreError
from elmore.serve.served_models import load_models, name_models
from elmore.serve.settings import Limits, ServeSettings
from tests.tiny import TRAINED_MODEL


def test_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b").mkdir()
    assert name_models([]) == [("english", None)]
    assert name_models(["team/model"]) == [("team/model", "team/model")]
    assert name_models([str(tmp_path)]) == [(tmp_path.name, str(tmp_path))]
    assert name_models(["x=y", "z=y"]) == [("x", "y"), ("z", "y")]
    assert name_models(["a=b"]) == [("a=b", "a=b")]  # a folder that exists


@pytest.mark.parametrize(
    ("given", "complaint"), [(["a=x", "a=y"], "two models"), (["=x"], "empty")]
)
def test_mistakes_are_one_sentence(given, complaint):
    with pytest.raises(ElmoreError, match=complaint):
        name_models(given)


def test_settings_reach_the_embedder():
    settings = ServeSettings(
        models=(f"tiny={TRAINED_MODEL}",),
        layers="top",
        max_sentence_tokens=7,
        limits=Limits(batch_tokens=100),
    )
    (model,) = load_models(settings)
    assert (model.name, str(model.embedder.choose_layers())) == ("tiny", "top")
    assert model.embedder.max_sentence_tokens == 7
    assert model.has_lm_head
