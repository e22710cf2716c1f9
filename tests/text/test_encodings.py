"""The advice for text that is not UTF-8 names the encoding that the text has."""

import pytest

from elmore.text.encodings import advise_on_encoding


@pytest.mark.parametrize(
    ("text", "codec", "encoding"),
    [
        ("我们希望中国经济持续发展。\n", "gb2312", "GB18030"),
        ("朱镕基说，1998年经济增长3.5%。\n", "gbk", "GB18030"),
        ("銀行在河岸邊，我愛臺灣。\n", "big5", "BIG5"),
        ("Le caf\u00e9 \u00e9tait ferm\u00e9 \u00e0 No\u00ebl.\n", "latin-1", "LATIN1"),
        ("Stra\u00dfe, \u00dcber, M\u00e4rz\n", "latin-1", "LATIN1"),
    ],
)
def test_the_advice_names_the_encoding(text, codec, encoding):
    assert f"iconv -f {encoding} -t UTF-8" in advise_on_encoding(text.encode(codec))
