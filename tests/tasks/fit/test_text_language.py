"""A network trained on characters reads plain text as characters."""

import pytest

from elmore.tasks.fit.folder import load_task_model
from elmore.tasks.fit.text_language import choose_language
from tests.tasks.fit.made_up import Place, make_settings

CHARACTERS = "".join(f"{character}\tA\n" for character in "我在北京。")
WORDS = "我\tA\n在\tA\n北京\tA\n。\tA\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sentence", "expected"),
    [(CHARACTERS, list("他在北京1998.")), (WORDS, ["他在北京1998", "."])],
)
def test_plain_text_is_split_as_the_training_data_is(tmp_path, sentence, expected):
    place = Place(tmp_path)
    data = tmp_path / "chinese"
    data.mkdir()
    for part in ("train", "dev"):
        (data / f"{part}.txt").write_text(f"{sentence}\n" * 4, encoding="utf-8")
    place.fit("run", "training.max_epochs=1", data_folder=data)
    model = load_task_model(tmp_path / "run")
    ((example, tags),) = model.predict(["他在北京1998."])
    assert example.tokens == expected
    assert len(tags) == len(expected)


def test_english_letters_are_not_chinese_characters():
    settings = make_settings()
    assert choose_language(settings, [list("abc")]) is settings
    assert choose_language(settings, []) is settings
