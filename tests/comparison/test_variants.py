from elmore.comparison.variants import MAX_LABEL_CHARS, describe


def test_variants_have_different_words():
    names = ["without", "input", "output", "both", "top", "average", "finetuned", "own"]
    for words in ("name", "label", "after_with"):
        assert len({getattr(describe(name), words) for name in names}) == len(names)


def test_a_variant_that_is_not_known_keeps_its_name():
    assert describe("own\nuse").name == "own use"
    long = describe("x" * 100)
    assert (len(long.name), len(long.label)) == (100, MAX_LABEL_CHARS)


def test_shares_are_learned_unless_the_variant_is_known_to_fix_them():
    fixed = [
        name for name in ("input", "top", "average", "own") if not describe(name).learns_shares
    ]
    assert fixed == ["top", "average"]
