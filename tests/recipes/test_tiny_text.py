"""The text of the tiny model: the same everywhere, and its senses are what they are called."""

import random
from collections import Counter

from recipes.tiny.make_text import Grammar, make_sentences


def test_a_seed_gives_one_text():
    def make(seed):
        return [sentence.tokens for sentence in make_sentences(num_sentences=50, seed=seed)]

    assert make(1) == make(1) != make(2)
    # The model was trained on this text; a Python that draws otherwise is noticed here.
    assert " ".join(make(1)[2]) == "Anna carried a light suitcase of ten pounds ."


def test_a_sentence_has_its_ambiguous_word_once_and_no_other():
    ambiguous = set(Grammar().senses)
    for sentence in make_sentences(num_sentences=2000, seed=3):
        found = [
            (token.lower(), position)
            for position, token in enumerate(sentence.tokens)
            if token.lower() in ambiguous
        ]
        assert found == ([(sentence.word, sentence.position)] if sentence.word else [])
        assert sentence.tokens[0][0].isupper()
        assert sentence.tokens[-1] == "."
        assert not any("{" in token for token in sentence.tokens)


def test_every_sense_has_clues_of_its_own_and_a_fair_share():
    grammar = Grammar()
    for senses in grammar.senses.values():
        # Verbs may share what stands on one side of them, not both.
        contexts = [
            {(before, behind) for before in sense["before"] for behind in sense["behind"]}
            for sense in senses.values()
        ]
        assert len(set.union(*contexts)) == sum(map(len, contexts))
    draw = random.Random(0)
    drawn = [grammar.make_sentence(draw) for _ in range(4000)]
    counts = Counter((sentence.word, sentence.sense) for sentence in drawn if sentence.word)
    assert set(counts) == {(word, sense) for word, of in grammar.senses.items() for sense in of}
    assert min(counts.values()) > 60
