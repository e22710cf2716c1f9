import json
from collections import Counter

import pytest
import torch

from elmore.errors import ConfigError, DataError
from elmore.tasks.data.role_examples import RoleExample
from elmore.tasks.inputs.token_batch import TokenBatcher
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds.roles import RoleSettings, RoleTask, read_arguments
from elmore.tasks.networks.tag_numbers import NO_LABEL
from elmore.tasks.task import TaskBatch
from tests.tasks.data.places import find_data

TASK = RoleTask(RoleSettings())
TOKENS = ("They", "sold", "used", "cars")
COLUMNS = """\
#begin document (a/b); part 000
a/b 0 0 They PRP (S* - - - Ann * (ARG0*) * (3)
a/b 0 1 sold VBD * sell 01 1 Ann * (V*) * -
a/b 0 2 used VBN * use 02 - Ann * (ARG1* (V*) -
a/b 0 3 cars NNS *) car - - Ann * *) (ARG1*) -

a/b 0 0 Yes UH * - - - Ann * -
#end document
"""
ENTRY = {
    "words": list(TOKENS),
    "frames": [
        {
            "pred": 1,
            "lemma": "sell",
            "sense": "sell.01",
            "tags": ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"],
        },
        {"pred": 2, "lemma": "use", "sense": "use.02", "tags": ["O", "O", "B-V", "B-ARG1"]},
    ],
}


def make_example(*tags, predicate=0):
    tokens = tuple(f"t{place}" for place in range(len(tags)))
    return RoleExample(tokens=tokens, predicate=predicate, lemma="", sense="", tags=tags)


def write(folder, text, name="roles.jsonl"):
    path = folder / name
    path.write_text(text)
    return path


def test_both_formats_give_an_example_a_predicate(tmp_path):
    columns = list(TASK.read(write(tmp_path, COLUMNS, "roles.conll")))
    lines = list(TASK.read(write(tmp_path, json.dumps(ENTRY))))
    assert columns == lines
    assert [(example.tokens, example.predicate) for example in lines] == [(TOKENS, 1), (TOKENS, 2)]
    assert TASK.find_sentences(lines) == ([TOKENS, TOKENS],)
    assert TASK.count_tokens(lines[0]) == 4


def test_to_predict_on_only_predicates_are_wanted(tmp_path):
    path = write(tmp_path, json.dumps({"words": TOKENS, "frames": [{"pred": 1}, {"pred": 2}]}))
    examples = list(TASK.read_unlabeled(path))
    assert [(each.tokens, each.predicate) for each in examples] == [(TOKENS, 1), (TOKENS, 2)]
    assert {each.tags for each in examples} == {()}
    with pytest.raises(DataError, match="line 1: expected"):
        list(TASK.read(path))


def test_labels_are_those_of_training_in_a_fixed_order():
    examples = [make_example("B-V", "B-A1", "I-A1"), make_example("B-A0", "B-V")]
    labels = ("O", "B-A0", "B-A1", "B-V", "I-A1")
    assert TASK.find_labels(iter(examples)) == labels
    assert TASK.find_labels(reversed(examples)) == labels


def test_features_are_indices_of_predicates_and_tags():
    examples = [make_example("B-A1", "B-V", "O", predicate=1), make_example("B-A9", "B-V")]
    features = TASK.prepare(examples, labels=("O", "B-A1", "B-V"), with_gold=True)
    assert features.predicates.tolist() == [1, 0]
    assert features.tags.tolist() == [[1, 2, 0], [NO_LABEL, 2, NO_LABEL]]
    assert TASK.prepare(examples, labels=("O",), with_gold=False).tags is None


def test_scores_count_arguments_but_not_the_predicate():
    gold = [make_example("B-A0", "B-V", "B-A1", "I-A1"), make_example("B-V", "B-A2")]
    predicted = [("B-A0", "B-V", "B-A1", "O"), ("O", "O")]
    scores = TASK.score(gold, predicted)
    assert scores == pytest.approx({"f1": 40.0, "precision": 50.0, "recall": 100 / 3})
    assert TASK.score(gold, [example.tags for example in gold])[TASK.main_score] == 100
    assert TASK.score(gold[:1], [("O", "B-V", "O", "O")])["f1"] == 0


@pytest.mark.parametrize(
    ("predicted", "num_correct", "num_predicted"),
    [
        ("B-A1 B-V O B-C-A1 B-A2", 2, 2),
        ("B-A1 B-V O O B-A2", 1, 2),  # half of A1 is none of it
        ("O B-V O B-C-A1 B-A2", 1, 2),  # and neither is the other half
        ("B-A1 B-V O B-A1 B-A2", 1, 3),
        ("B-A1 B-V B-C-V B-C-A1 B-A2", 2, 2),  # C-V is the predicate's
        ("B-A1 B-V O B-C-A1 B-C-A1", 0, 1),
    ],
)
def test_an_argument_in_pieces_is_right_as_a_whole(predicted, num_correct, num_predicted):
    scores = TASK.score([make_example("B-A1", "B-V", "O", "B-C-A1", "B-A2")], [predicted.split()])
    assert scores["recall"] == pytest.approx(100 * num_correct / 2)
    assert scores["precision"] == pytest.approx(100 * num_correct / num_predicted)


def test_a_piece_belongs_to_the_last_argument_of_its_role_or_is_one_itself():
    pieces = read_arguments(["B-A1", "B-A1", "B-C-A1", "B-V", "B-C-A2", "B-C-A2"])
    assert {tuple((part.start, part.type) for part in parts) for parts in pieces} == {
        ((0, "A1"),),
        ((1, "A1"), (2, "A1")),
        ((4, "A2"), (5, "A2")),
    }


def test_json_has_the_arguments_in_words():
    example = RoleExample(tokens=TOKENS, predicate=1, lemma="", sense="", tags=())
    written = TASK.to_json(example, ("B-ARG0", "B-V", "B-C-V", "B-C-ARG0"))
    assert json.loads(json.dumps(written)) == {
        "tokens": list(TOKENS),
        "predicate": 1,
        "tags": ["B-ARG0", "B-V", "B-C-V", "B-C-ARG0"],
        "arguments": [
            {"start": 0, "end": 1, "role": "ARG0", "text": "They"},
            {"start": 3, "end": 4, "role": "C-ARG0", "text": "cars"},
        ],
    }
    (argument,) = TASK.to_json(example, ("O", "B-V", "B-ARG1", "I-ARG1"))["arguments"]
    assert argument == {"start": 2, "end": 4, "role": "ARG1", "text": "used cars"}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"hidden_dim": 0}, "task.hidden_dim is 0; give a whole number from 1"),
        ({"num_layers": 2.5}, "task.num_layers is 2.5"),
        ({"mark_dim": True}, "task.mark_dim is True"),
        ({"dropout": 1.0}, "task.dropout is 1.0; give a number from 0 to 0.99"),
        ({"dropout": "high"}, "task.dropout is 'high'"),
    ],
)
def test_settings_that_are_invalid_are_reported(change, complaint):
    with pytest.raises(ConfigError, match=complaint):
        RoleSettings(**change)


def test_settings_reach_the_network():
    settings = RoleSettings(hidden_dim=7, num_layers=3, mark_dim=5, dropout=0.25)
    network = RoleTask(settings).build(TokenInput(words=torch.randn(4, 6)), labels=("O", "B-V"))
    assert network.marks.embedding_dim == 5
    assert network.linear.in_features == 7
    assert [layer.dropout.rate for layer in network.encoder.layers] == [0.25] * 3


def make_sentence(generator):
    """Return tokens in which each verb takes the last noun before it, and all up to a stop."""
    kinds = torch.randint(10, (8,), generator=generator).tolist()
    words = [f"noun{kind}" if kind < 4 else f"verb{kind}" if kind < 7 else "stop" for kind in kinds]
    return tuple(words)


def make_examples(num_examples, *, seed=0):
    """Return examples that need words, the mark, both directions, and something remembered."""
    generator = torch.Generator().manual_seed(seed)
    examples = []
    while len(examples) < num_examples:
        tokens = make_sentence(generator)
        for predicate, token in enumerate(tokens):
            if token.startswith("verb"):
                tags = ["O"] * len(tokens)
                tags[predicate] = "B-V"
                nouns = [at for at in range(predicate) if tokens[at].startswith("noun")]
                for noun in nouns[-1:]:
                    tags[noun] = "B-ARG0"
                rest = (*tokens, "stop")[predicate + 1 :].index("stop")
                for place in range(predicate + 1, predicate + 1 + rest):
                    tags[place] = "B-ARG1" if place == predicate + 1 else "I-ARG1"
                examples.append(
                    RoleExample(
                        tokens=tokens, predicate=predicate, lemma="", sense="", tags=tuple(tags)
                    )
                )
    return examples[:num_examples]


@pytest.mark.slow
def test_fifty_examples_are_memorized():
    examples = make_examples(50)
    num_sentences = len({example.tokens for example in examples})
    assert num_sentences < 30  # the mark is needed
    torch.manual_seed(0)
    task = RoleTask(RoleSettings(hidden_dim=24, num_layers=2, mark_dim=4, dropout=0.05))
    labels = task.find_labels(examples)
    words = sorted({token for example in examples for token in example.tokens})
    network = task.build(TokenInput(words=torch.randn(len(words) + 2, 8)), labels=labels)
    (sentences,) = task.find_sentences(examples)
    batch = TaskBatch(
        sentences=(TokenBatcher(words=words).make(sentences),),
        features=task.prepare(examples, labels=labels, with_gold=True),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(120):
        optimizer.zero_grad()
        network.loss(batch).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
    with torch.no_grad():
        scores = task.score(examples, network.eval().predict(batch))
    assert scores["f1"] > 98


def test_the_web_treebank_scores_itself_whole():
    path = find_data("srl_ewt/dev.jsonl")
    examples = list(TASK.read(path))
    assert TASK.score(examples, [example.tags for example in examples])["f1"] == 100
    # No continuation there is without an argument that it continues.
    roles = Counter(tag[2:] for example in examples for tag in example.tags if tag[0] == "B")
    num_whole = sum(
        number for role, number in roles.items() if role != "V" and not role.startswith("C-")
    )
    assert sum(len(read_arguments(example.tags)) for example in examples) == num_whole
    unlabeled = TASK.read_unlabeled(path)
    assert [(one.tokens, one.predicate) for one in unlabeled] == [
        (one.tokens, one.predicate) for one in examples
    ]
