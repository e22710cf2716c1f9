from elmore.text.documents import group_documents, limit_sentences


def test_a_limit_ends_with_the_sentence_that_reaches_it():
    sentences = [["a", "b"], [], ["c"], ["d"]]
    assert list(limit_sentences(iter(sentences), max_tokens=3)) == sentences[:1]
    assert list(limit_sentences(iter(sentences), max_tokens=4)) == sentences[:3]
    assert list(limit_sentences(iter(sentences), max_tokens=None)) == sentences


def test_sentences_are_grouped_into_documents_or_left_alone():
    sentences = [[], ["a"], ["b"], [], [], ["c"], []]
    documents = group_documents(iter(sentences), by_sentence=False)
    assert list(documents) == [[["a"], ["b"]], [["c"]]]
    assert list(group_documents(iter(sentences), by_sentence=True)) == [[["a"]], [["b"]], [["c"]]]
