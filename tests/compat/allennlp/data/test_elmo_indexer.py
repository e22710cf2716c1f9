from elmore.compat.allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper
from tests import reference


def test_words_are_spelled_as_in_bilm_tf_and_one_higher():
    for word in ("a", "é" * 40, "<S>", "</S>", "", "日本語"):
        wanted = [1 + unit for unit in reference.bilm_tf_char_ids(word, max_chars=50)]
        assert ELMoCharacterMapper().convert_word_to_char_ids(word) == wanted


def test_added_tokens_have_a_character_of_their_own():
    mapper = ELMoCharacterMapper({"<first>": 1})
    assert mapper.convert_word_to_char_ids("<first>") == [259, 2, 260, *[261] * 47]
    assert mapper == ELMoCharacterMapper({"<first>": 1})
    assert mapper != ELMoCharacterMapper()


def test_the_constants_are_allennlps():
    assert ELMoCharacterMapper.beginning_of_sentence_characters == [258, 256, 259, *[260] * 47]
    assert ELMoCharacterMapper.end_of_sentence_characters == [258, 257, 259, *[260] * 47]
    assert ELMoCharacterMapper.max_word_length == 50
