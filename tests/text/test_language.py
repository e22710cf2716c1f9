"""Unsegmented Chinese that is split at spaces is noticed; segmented Chinese and English are not."""

import warnings

import pytest

from elmore.errors import DataWarning
from elmore.text.language import Language
from elmore.text.tokens import split_tokens

UNSEGMENTED = "我们希望中国经济持续健康快速发展。"


def test_chinese_without_spaces_is_noticed_and_the_remedy_named():
    with pytest.warns(DataWarning, match="--language zh, for tasks --set task.language=zh"):
        tokens = split_tokens(UNSEGMENTED)
    assert tokens == [UNSEGMENTED[:-1], "。"]  # the result stays what it was


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("我们 希望 中国 经济 持续 健康 快速 发展 。", Language.EN),
        ("The Analects (论语) are by Confucius.", Language.EN),
        (UNSEGMENTED, Language.ZH_CHARS),
        (UNSEGMENTED, Language.ZH),
    ],
)
def test_text_that_is_split_well_is_not_noticed(text, language):
    if language is Language.ZH:
        pytest.importorskip("rjieba", reason="needs elmore[chinese]")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(split_tokens(text, language=language)) > 5
