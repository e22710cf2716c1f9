import re

import pytest

from elmore.errors import DataError
from elmore.tasks.data.coreference import SpokenSentence, read_documents
from tests.tasks.data.places import find_data

CONLL_2012 = """\
#begin document (bc/cctv/00); part 000
bc/cctv/00  0  0  Ann   NNP  (TOP*  -  -  -  Speaker#1  *  (0)
bc/cctv/00  0  1  left  VBD  *)     -  -  -  Speaker#1  *  -

bc/cctv/00  0  0  She   PRP  (TOP*  -     -   -  -  *  (ARG0*)  (0)
bc/cctv/00  0  1  ran   VBD  *)     run  01  -  -  *  (V*)     -

#end document
#begin document (bc/cctv/00); part 001
bc/cctv/00  1  0  It  PRP  *  -  -  -  -  *  (5)
#end document
"""
LITBANK = """\
#begin document (emma_brat); part 0
emma_brat\t0\t0\tEmma\t_\t_\t_\t_\t_\t_\t_\t_\t(1
emma_brat\t0\t1\tWoodhouse\t_\t_\t_\t_\t_\t_\t_\t_\t(2)|1)
emma_brat\t0\t2\t,\t_\t_\t_\t_\t_\t_\t_\t_\t

emma_brat\t0\t0\tshe\t_\t_\t_\t_\t_\t_\t_\t_\t(1)
#end document
"""
ONTOGUM = """\
# begin document
0\tByron\t(2)
1\treceived\t_
2\this\t(1(2)
3\teducation\t1)
4\t\t_
5\t#\t_
# end document
"""
CONLLU = """\
# newdoc id = talk
# speaker = Kendra
# text = What'd you do Sabrina?
1-2\tWhat'd\t_\t_\t_\t_\t_\t_\t_\t_
1\tWhat\twhat\tPRON\tWP\t_\t4\tobj\t4:obj\tXML=<w>
2\t'd\tdo\tAUX\tVBD\t_\t4\taux\t4:aux\tXML=</w>
3\tyou\tyou\tPRON\tPRP\t_\t4\tnsubj\t4:nsubj\tEntity=(1)
4\tdo\tdo\tVERB\tVB\t_\t0\troot\t0:root\t_
4.1\tdo\tdo\tVERB\tVB\t_\t_\t_\t_\tEntity=(9)
5\tSabrina\tSabrina\tPROPN\tNNP\t_\t4\tvocative\t4:vocative\tA=b|Entity=(1)|SpaceAfter=No

# text = Nothing
1\tNothing\tnothing\tPRON\tNN\t_\t0\troot\t0:root\tSpaceAfter=No

# newdoc id = walk
1\tShe\tshe\tPRON\tPRP\t_\t0\troot\t0:root\tEntity=(1)
"""


def write(folder, text, name="file.conll"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_conll_2012_has_speakers_and_a_column_for_each_predicate(tmp_path):
    first, second = read_documents(write(tmp_path, CONLL_2012))
    assert (first.name, second.name) == ("bc/cctv/00/000", "bc/cctv/00/001")
    assert first.sentences == (
        SpokenSentence(tokens=("Ann", "left"), speaker="Speaker#1"),
        SpokenSentence(tokens=("She", "ran"), speaker=None),
    )
    assert first.tokens == ("Ann", "left", "She", "ran")
    assert first.clusters == (((0, 1), (2, 3)),)
    assert second.clusters == (((0, 1),),)


def test_litbank_leaves_the_last_column_empty(tmp_path):
    (document,) = read_documents(write(tmp_path, LITBANK))
    assert document.name == "emma_brat/0"
    assert [sentence.tokens for sentence in document.sentences] == [
        ("Emma", "Woodhouse", ","),
        ("she",),
    ]
    assert document.clusters == (((0, 2), (3, 4)), ((1, 2),))


def test_ontogum_has_three_columns_no_name_and_no_sentences(tmp_path):
    (document,) = read_documents(write(tmp_path, ONTOGUM, "GUM_bio.conll"))
    assert document.name == "GUM_bio"
    assert document.tokens == ("Byron", "received", "his", "education", "_", "#")
    assert document.hidden_share == 1 / 6
    assert document.clusters == (((0, 1), (2, 3)), ((2, 4),))


def test_conllu_has_sentences_and_speakers(tmp_path):
    talk, walk = read_documents(write(tmp_path, CONLLU, "file.conllu"))
    assert talk.sentences == (
        SpokenSentence(tokens=("What", "'d", "you", "do", "Sabrina"), speaker="Kendra"),
        SpokenSentence(tokens=("Nothing",), speaker=None),
    )
    assert talk.clusters == (((2, 3), (4, 5)),)
    assert (walk.name, walk.tokens, walk.clusters) == ("walk", ("She",), (((0, 1),),))


def test_documents_of_one_name_stay_apart(tmp_path):
    documents = list(read_documents(write(tmp_path, LITBANK + LITBANK)))
    assert [len(document.tokens) for document in documents] == [4, 4]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.conll", CONLL_2012),
        ("a.conll", LITBANK.replace("|1)", "")),
        ("a.conll", ONTOGUM.replace("(1(2)", "nonsense")),
        # As GUM has it, which says more of a mention than its number.
        ("a.conllu", CONLLU.replace("Entity=(1)", "Entity=(1-person-giv:act-cf1*-1-coref)")),
        ("a.conllu", CONLLU.replace("Entity=(1)", "Entity=1)(")),
    ],
)
def test_clusters_that_are_not_read_need_not_fit(tmp_path, name, text):
    documents = list(read_documents(write(tmp_path, text, name), reads_clusters=False))
    assert {document.clusters for document in documents} == {()}
    whole = {"a.conll": LITBANK if "emma" in text else ONTOGUM, "a.conllu": CONLLU}[name]
    whole = CONLL_2012 if text == CONLL_2012 else whole
    expected = read_documents(write(tmp_path, whole, name))
    assert [(each.name, each.sentences) for each in documents] == [
        (each.name, each.sentences) for each in expected
    ]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.conll", LITBANK.replace("|1)", ""), r"a\.conll, line 2: the mention \(1 does not end"),
        ("a.conll", LITBANK.replace("\t(1\n", "\t\n"), r"line 3: '\(2\)\|1\)' ends a mention"),
        ("a.conll", LITBANK.replace("(2)|1)", "(2)1"), "line 3: expected brackets .* got '.2.1'"),
        ("a.conll", LITBANK.replace("0\t1\t", "", 1), "line 3: expected 3 columns .* got 11"),
        (
            "a.conllu",
            CONLLU.replace("Entity=(1)|", "Entity=1)|"),
            r"a\.conllu, line 10: '1\)' ends",
        ),
        ("a.conllu", CONLLU.replace("\tXML=</w>", ""), "line 6: expected the 10 columns .* got 9"),
        ("a.conllu", ONTOGUM, "line 2: expected the 10 columns"),
        ("a.conllu", CONLLU.replace("4.1\t", "x\t"), "line 9: expected the 10 columns .* number"),
        ("a.conll", "#begin document (a); part 0\n#end document\n", "has no document with words"),
        ("a.conllu", "", "has no document with words"),
    ],
)
def test_what_does_not_fit_is_reported_with_its_line(tmp_path, name, text, complaint):
    with pytest.raises(DataError, match=complaint):
        list(read_documents(write(tmp_path, text, name)))


def count(paths):
    """Return the numbers of documents, mentions, and documents with hidden words."""
    documents = [document for path in paths for document in read_documents(path)]
    num_mentions = sum(len(cluster) for each in documents for cluster in each.clusters)
    return len(documents), num_mentions, sum(each.hidden_share > 0.05 for each in documents)


@pytest.mark.parametrize("form", ["conll", "conllu"])
def test_ontogum_has_its_mentions_in_either_form(form):
    parts = re.split(r"^## ", find_data("coref_gum/splits.md").read_text(), flags=re.MULTILINE)
    names = {part.split()[0]: re.findall(r"\* (\S+)", part) for part in parts[1:]}
    folder = find_data(f"coref_gum/ontogum_{form}")
    counts = {
        part: count(folder / f"{name}.{form}" for name in names[part])
        for part in ("train", "dev", "test")
    }
    assert {part: found[:2] for part, found in counts.items()} == {
        "train": (191, 25_134),
        "dev": (32, 4_082),
        "test": (32, 3_832),
    }
    assert sum(num_hidden for *_, num_hidden in counts.values()) == 18


def test_litbank_has_its_mentions():
    paths = sorted(find_data("coref_litbank/conll").iterdir())
    assert count(paths) == (100, 29_103, 0)
