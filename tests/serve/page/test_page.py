"""The page in Chromium: every view by mouse and keyboard, deep links, exports, accessibility."""

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import elmore
from tests.serve.processes import ROOT, serving
from tests.serve.services import load_tiny
from tests.tasks.fit.made_up import Place

pytestmark = pytest.mark.slow

WEB = ROOT / "web"
CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser"])), None)
ENGLISH = ROOT / "src" / "elmore" / "models" / "english"


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    """The folder of a small trained tagger."""
    place = Place(tmp_path_factory.mktemp("task"))
    place.fit("letters")
    return place.folder / "letters"


@pytest.fixture(scope="module")
def seen(tagger):
    """What the page showed."""
    if CHROMIUM is None or shutil.which("node") is None:
        pytest.skip("needs chromium and node")
    for package in ("playwright-core", "axe-core"):
        if not (WEB / "node_modules" / package).is_dir():
            pytest.skip(f"{package} is missing: make test-page installs it")
    pytest.importorskip("openTSNE", reason="openTSNE is not installed")
    options = ("--model", f"english={ENGLISH}", "--task", f"letters={tagger}", "--no-access-log")
    with serving(*options) as server:
        driver = Path(__file__).with_name("drive_page.mjs")
        done = subprocess.run(
            ["node", str(driver), str(WEB), CHROMIUM, server.url],
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        status, log = server.stop()
    assert done.returncode == 0, done.stderr
    assert (status, log) == (0, "")
    return {**json.loads(done.stdout), "url": server.url}


@pytest.fixture(scope="module")
def index():
    return elmore.open_index()


def test_no_request_leaves_the_host_and_nothing_fails(seen):
    assert seen["errors"] == []
    # The two that the driver provokes: an unknown use, and a server that asks for a key.
    assert sorted(set(seen["refused"])) == ["401 /info", "422 /compare"]
    foreign = [url for url in seen["requests"] if not url.startswith((seen["url"], "blob:"))]
    assert foreign == []
    assert len(seen["requests"]) > 20


def test_axe_finds_no_violation_in_light_dark_and_on_a_phone(seen):
    assert seen["axe"] == []
    assert len(seen["overflow"]) == 30
    assert {name: width for name, width in seen["overflow"].items() if width > 0} == {}


def test_the_list_has_the_uses_of_the_index(seen, index):
    shown, found = seen["uses"], index.uses("bank")
    assert shown["numbers"] == [use.number for use in found.uses]
    assert f"{found.total} uses in" in shown["facts"]
    assert all(f"{word} {count}" in shown["facts"] for word, count in found.spellings.items())
    assert shown["title"].startswith("bank")


def test_maps_are_drawn_and_layer_0_has_one_point_per_spelling(seen):
    zero, one, two = seen["uses"]["pixels"]
    assert 300 < zero < one
    assert min(one, two) > 1000
    assert "and 90 other uses at this point" in seen["map"]["heapTip"]


def test_groups_have_their_distinctive_words(seen, index):
    uses = index.uses("bank").uses
    found = index.groups(uses, 1, center_by_spelling=True)
    assert len(seen["uses"]["groups"]) == len(found.groups)
    for shown, group in zip(seen["uses"]["groups"], found.groups, strict=True):
        assert f"{group.num_uses} uses" in shown
        assert all(entry.word in shown for entry in group.words[:3])
    assert seen["uses"]["focusedGroup"] == found.groups[0].num_uses
    plain = [group.num_uses for group in index.groups(uses, 1).groups]
    for size, shown in zip(plain, seen["uses"]["plainGroups"], strict=True):
        assert f"{size} uses" in shown
    assert "senses" not in json.dumps(seen["uses"])


def test_the_list_is_used_by_keyboard_and_marks_the_map(seen, index):
    shown, second = seen["uses"], index.uses("bank").uses[1]
    assert shown["focusedRow"] == second.number
    assert shown["openedHash"].endswith(f"use={second.number}")
    assert "".join(shown["openedText"].split()) == "".join(second.tokens)
    assert shown["ringIsDrawn"]


def test_a_point_of_the_map_opens_its_use(seen, index):
    shown = seen["map"]
    use = index.use(shown["openedUse"])
    assert use.word.casefold() == "watch"
    assert shown["hash"].endswith(f"use={use.number}")
    near = use.tokens[max(0, use.position - 3) : use.position + 4]
    assert "".join(near) in "".join(shown["tip"].split())


def test_filters_change_what_is_shown(seen, index):
    assert f"{index.uses('bank', match_case=True).total} uses" in seen["uses"]["exactFacts"]
    assert len(seen["uses"]["sources"]) == 7
    assert seen["uses"]["sources"][-1].endswith("others")


def test_the_address_holds_the_state(seen, index):
    assert seen["uses"]["tsneHash"] == "#/uses?word=bank&center=off&color=source&map=tsne"
    assert "word=spring" in seen["uses"]["typedHash"]
    assert seen["uses"]["completions"] == ["spring"]
    assert seen["uses"]["backWord"] == "bank"
    assert seen["map"]["deep"] == {
        "word": "bank",
        "opened": 1,
        "categories": list(index.uses("bank").spellings),
        "layer": True,
    }


def test_uses_are_exported_with_their_points(seen, index):
    shown = seen["uses"]["csv"]
    assert shown["name"] == "elmore-uses-bank.csv"
    rows = list(csv.DictReader(io.StringIO(shown["text"].removeprefix("\ufeff"), newline="")))
    uses = index.uses("bank").uses
    assert [int(row["number"]) for row in rows] == [use.number for use in uses]
    drawn = index.map(uses, 2, method="tsne")
    points = [(float(row["layer2_x"]), float(row["layer2_y"])) for row in rows]
    np.testing.assert_allclose(points, drawn.points, rtol=1e-5)
    picture = seen["uses"]["png"]
    assert (picture["name"], picture["start"]) == ("elmore-map-bank.png", "89504e470d0a1a0a")
    assert picture["size"] > 5000


def test_an_unknown_word_is_answered_kindly(seen):
    assert "“xyzzy” does not occur" in seen["uses"]["empty"]


def test_a_word_without_vectors_has_a_list_and_no_map(seen, index):
    shown = seen["uses"]["noVectors"]
    assert "vectors of the words above only" in shown["note"]
    assert (shown["rows"], shown["maps"]) == (index.uses("river").total, 0)
    assert shown["skeletons"] == 0


def test_an_index_of_all_words_offers_some_to_begin_with(seen, index):
    # The page was told that all words have vectors; the server knows better and offers ten.
    assert sorted(map(str.casefold, seen["states"]["frequent"])) == sorted(index.indexed_words)


def test_texts_are_laid_out_in_their_direction(seen):
    assert all(distance > 0 for distance in seen["directions"].values())
    assert set(seen["directions"]) == {"nearest", "surprise"}


def test_the_nearest_uses_are_those_of_the_index(seen, index):
    shown = seen["nearest"]
    embedder = elmore.load(ENGLISH)
    query = index.typed_use(embedder, "They fished from the bank of the river.", "bank")
    found = index.nearest(query, 1, top=30, word="bank")
    assert shown["word"] == "bank"
    assert shown["list"] == [[near.use.number, f"{near.similarity:.2f}"] for near in found]
    assert "scope=all" in shown["scopeHash"]
    ring = index.typed_use(embedder, "She wore a gold ring on her finger", "ring")
    (best,) = index.nearest(ring, 1, top=1)
    assert shown["typedWord"] == "ring"
    assert "t4:She" in shown["typedHash"]
    assert shown["compared"] == [
        f"{cosine:.2f}" for cosine in index.compare(ring, best.use).values()
    ]
    assert f"b=n{best.use.number}" in shown["pins"]
    assert f"use=n{best.use.number}" in shown["nextHash"]
    assert shown["csv"] == {"name": "elmore-nearest-ring.csv", "lines": 31}
    assert shown["problem"].startswith("A use is 99999999")


def test_a_sentence_is_compared_token_by_token(seen):
    shown = seen["sentence"]
    tokens = ["A", "bank", "is", "not", "a", "bank", "."]
    vectors = load_tiny().embed([tokens], layers="all")[0]
    mixed = vectors.mean(axis=0)
    units = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (*vectors, mixed)]
    assert shown["chosen"] == "Similar to “bank”"
    for name, *values in shown["table"]:
        assert name in tokens
        assert len(values) == 4
    others = [i for i in range(7) if i != 1]
    expected = [[float(unit[1] @ unit[i]) for unit in units] for i in others]
    values = [[float(v.replace("−", "-")) for v in row[1:]] for row in shown["table"]]
    np.testing.assert_allclose(values, expected, atol=0.0051)
    only = [[float(v.replace("−", "-")) for v in row[1:]] for row in shown["onlyLayer1"]]
    assert [row[3] for row in only] == [row[1] for row in only]
    assert "mix=0,50,0" in shown["mixHash"]
    assert "token=3" in shown["tokenHash"]
    assert (shown["csv"], shown["png"]) == (50, "PNG")
    assert "text=One+two+." in shown["typedHash"]


def test_surprise_and_gaps_are_those_of_the_language_model(seen):
    shown = seen["surprise"]
    score = load_tiny().score("She opened the door .")
    bits = [-np.array(logs) / np.log(2) for logs in (score.forward_lm[:-1], score.backward_lm[1:])]
    for label, token, left, right in zip(shown["tokens"], score.tokens, *bits, strict=True):
        shown_text = " ".join(label.split())
        assert f"{left:.1f} bits from the left" in shown_text
        assert f"{right:.1f} bits from the right" in shown_text
        assert f" {token} " in shown_text
    fillings = load_tiny().fill(["She", "opened", "the", "___", "."], top=12)
    assert shown["fillings"] == [filling.word for filling in fillings]
    assert "gap=3" in shown["hash"]
    assert shown["csv"] == 6


def test_a_task_shows_its_tags_and_probabilities(seen, tagger):
    task = elmore.load_task(tagger)
    (found,) = task.describe(["a bad cab"])
    assert seen["task"]["tags"] == found["tags"]
    shares = [float(text.split()[0]) / 100 for text in seen["task"]["shares"]]
    assert shares == pytest.approx(found["probabilities"], abs=0.0051)
    assert seen["task"]["typedTags"] == task.describe(["dada abba"])[0]["tags"]
    assert "text=dada+abba" in seen["task"]["typedHash"]
    assert seen["task"]["csv"] == 4


def test_states_without_data_say_what_to_do(seen):
    states = seen["states"]
    assert "elmore explore --task" in states["noTask"]
    assert "no LM head" in states["noHead"]
    assert "does not have the index's model" in states["noModel"]
    assert states["noModelProblems"] == 0
    assert states["keys"][-1] == "Bearer secret"
    assert "The server does not answer" in states["gone"]
    assert states["again"] > 0


def test_every_kind_of_prediction_is_shown_with_its_probabilities(seen):
    kinds = seen["kinds"]
    marks = {kind: [" ".join(m.split()) for m in shown["marks"]] for kind, shown in kinds.items()}
    assert marks["entities"] == ["Anna PER 98 %", "Ben PER 50 %", "Paris LOC 100 %"]
    assert marks["roles"] == ["Cats ARG0 90 %", "chase predicate", "mice ARG1 80 %"]
    assert marks["coreference"] == ["Mary 1", "her 1"]
    assert marks["questions"] == ["Clara"]  # offsets count code points, not UTF-16 units
    assert "“Clara”, with probability 81 %" in kinds["questions"]["text"]
    assert kinds["sentiment"]["text"].index("good") < kinds["sentiment"]["text"].index("bad")
    assert "70 %" in kinds["entailment"]["text"]


def test_every_kind_of_task_gets_the_input_that_it_takes(seen):
    asked = {kind: shown["asked"] for kind, shown in seen["kinds"].items()}
    second = "😀 Clara did."
    assert asked["entities"] == asked["coreference"] == asked["sentiment"] == "Cats chase mice"
    assert asked["roles"] == [["Cats", "chase", "mice"], 2]
    assert asked["questions"] == {"question": "Cats chase mice", "context": second}
    assert asked["entailment"] == ["Cats chase mice", second]
    rows = {kind: shown["csv"].strip().split("\r\n") for kind, shown in seen["kinds"].items()}
    assert rows["entities"][1] == "0,Anna,B-PER,0.9"
    assert rows["sentiment"][1] == "bad,0.2"
    assert rows["questions"][1] == "Cats chase mice,Clara,0.81"
    assert rows["coreference"][1] == "1,0,1,Mary"
