"""ElmoVectorizer and ElmoTokenVectorizer inside scikit-learn's own tools."""

import pickle

import numpy as np
import pytest

import elmore
from tests.tiny import TRAINED_MODEL

pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install '.[sklearn]'")

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted, validate_data

from elmore.integrations.sklearn import ElmoTokenVectorizer, ElmoVectorizer

MODEL = str(TRAINED_MODEL)
TEXTS = ["The bank raised its rates.", "", "He sat on the bank of the river.", "Rates fell."]
LABELS = ["money", "none", "river", "money"]


@pytest.fixture(scope="module")
def embedder():
    return elmore.load(MODEL)


class Rows:
    """Lets scikit-learn's checks, which have numbers only, test a vectorizer of texts."""

    def fit(self, X, y=None):
        return super().fit(self._write(X, reset=True), y)

    def transform(self, X):
        check_is_fitted(self)
        return super().transform(self._write(X, reset=False))

    def _write(self, X, *, reset):
        return [" ".join(f"{n:.6g}" for n in row) for row in validate_data(self, X, reset=reset)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.one_d_array = tags.input_tags.string = False
        tags.no_validation = False
        return tags


class RowsAsTexts(Rows, ElmoVectorizer):
    def __init__(
        self,
        model=MODEL,
        *,
        pool="mean",
        layers="average",
        state="reset",
        language="en",
        precision="f32",
        device="cpu",
    ):
        super().__init__(
            model,
            pool=pool,
            layers=layers,
            state=state,
            language=language,
            precision=precision,
            device=device,
        )


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["mean", "max", "last"])
def test_the_checks_of_scikit_learn_pass_on_rows_written_as_texts(pool):
    results = estimator_checks.check_estimator(RowsAsTexts(pool=pool), on_fail=None, on_skip=None)
    assert len(results) > 40
    not_passed = {r["check_name"] for r in results if r["status"] != "passed"}
    # It needs the variable SCIPY_ARRAY_API, and text has no array API.
    assert not_passed <= {"check_array_api_input"}


@pytest.mark.parametrize("made", [ElmoVectorizer(), ElmoTokenVectorizer()], ids=repr)
def test_the_checks_that_need_no_numbers_pass_directly(made):
    name = type(made).__name__
    for check in (
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_tags_renamed,
        estimator_checks.check_valid_tag_types,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
        estimator_checks.check_mixin_order,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
    ):
        check(name, clone(made))


@pytest.mark.parametrize("layers", ["average", "top", 0])
def test_rows_are_the_sentence_vectors_of_the_embedder(embedder, layers):
    found = ElmoVectorizer(MODEL, layers=layers).fit_transform(TEXTS)
    assert np.array_equal(found, embedder.sentence_vectors(TEXTS, layers=layers))
    assert found.dtype == np.float32


def test_the_last_states_are_those_that_have_read_everything(embedder):
    found = ElmoVectorizer(MODEL, pool="last", layers="top").fit_transform(TEXTS)
    half = embedder.vector_dim // 2
    for row, vectors in zip(found, embedder.embed(TEXTS, layers="top"), strict=True):
        if len(vectors):
            assert np.array_equal(row, [*vectors[-1, :half], *vectors[0, half:]])
        else:
            assert not row.any()


def test_vectors_for_similarity_have_their_own_layers_and_width():
    embedder = elmore.load(MODEL)
    embedder.fit_similarity([[word] for text in TEXTS for word in embedder.tokenize(text)] * 200)
    vectorizer = ElmoVectorizer(embedder, pool="similarity").fit(TEXTS)
    found = vectorizer.transform(TEXTS)
    assert np.array_equal(found, embedder.sentence_vectors(TEXTS, pool="similarity"))
    assert len(vectorizer.get_feature_names_out()) == found.shape[1]
    with pytest.raises(elmore.ElmoreError, match="layers of its own"):
        ElmoVectorizer(embedder, pool="similarity", layers=1).fit(TEXTS)


def test_several_layers_are_concatenated(embedder):
    vectorizer = ElmoVectorizer(MODEL, layers=[0, 2]).fit(TEXTS)
    parts = [embedder.sentence_vectors(TEXTS, layers=layer) for layer in (0, 2)]
    assert np.array_equal(vectorizer.transform(TEXTS), np.concatenate(parts, axis=1))
    assert len(vectorizer.get_feature_names_out()) == 2 * embedder.vector_dim
    tokens = ElmoTokenVectorizer(MODEL, layers=[0, 2]).fit_transform(TEXTS[:1])
    rows = [embedder.embed(TEXTS[0], layers=layer) for layer in (0, 2)]
    assert np.array_equal(tokens, np.concatenate(rows, axis=1))


def test_token_lists_and_an_embedder_are_taken_as_they_are(embedder):
    tokens = [["The", "bank"], ["A", "New York", "bank"]]
    found = ElmoVectorizer(embedder).fit_transform(tokens)
    assert np.array_equal(found, embedder.sentence_vectors(tokens))


@pytest.mark.parametrize("state", ["document", "stream"])
def test_carried_state_starts_over_in_each_call(state):
    embedder = elmore.load(MODEL, state=state)
    vectorizer = ElmoVectorizer(MODEL, state=state).fit(TEXTS)
    expected = embedder.sentence_vectors(TEXTS)
    assert np.array_equal(vectorizer.transform(TEXTS), expected)
    assert np.array_equal(vectorizer.transform(TEXTS), expected)


def test_one_row_per_token_grouped_by_text(embedder):
    vectorizer = ElmoTokenVectorizer(MODEL).fit(TEXTS)
    arrays = embedder.embed(TEXTS)
    assert np.array_equal(vectorizer.transform(TEXTS), np.concatenate(arrays))
    assert vectorizer.groups(TEXTS).tolist() == [n for n in range(4) for _ in arrays[n]]
    assert vectorizer.tokens(TEXTS) == [t for text in TEXTS for t in embedder.tokenize(text)]
    assert vectorizer.transform([]).shape == (0, embedder.vector_dim)


def test_token_rows_in_cross_validation_by_text():
    vectorizer = ElmoTokenVectorizer(MODEL, layers=0).fit(TEXTS)
    texts = TEXTS * 3
    labels = [token.isalpha() for token in vectorizer.tokens(texts)]
    scores = cross_val_score(
        LogisticRegression(max_iter=500),
        vectorizer.transform(texts),
        labels,
        groups=vectorizer.groups(texts),
        cv=GroupKFold(3),
    )
    assert scores.min() > 0.9
    pipeline = make_pipeline(ElmoTokenVectorizer(MODEL, layers=0), LogisticRegression(max_iter=500))
    assert pipeline.fit(texts, labels).score(texts, labels) > 0.9


@pytest.mark.slow
def test_a_grid_search_over_settings_of_the_vectorizer(tmp_path):
    pipeline = make_pipeline(
        ElmoVectorizer(MODEL), StandardScaler(), LogisticRegression(), memory=str(tmp_path)
    )
    grid = {
        "elmovectorizer__pool": ["mean", "last"],
        "elmovectorizer__layers": ["average", 0],
        "logisticregression__C": [0.1, 10],
    }
    search = GridSearchCV(pipeline, grid, cv=2).fit(TEXTS * 4, LABELS * 4)
    assert search.best_score_ == 1
    assert len(search.cv_results_["params"]) == 8
    assert pickle.loads(pickle.dumps(search)).predict(TEXTS).tolist() == LABELS


@pytest.mark.slow
def test_two_processes_find_what_one_finds():
    pipeline = make_pipeline(ElmoVectorizer(MODEL), LogisticRegression())
    grid = {"elmovectorizer__pool": ["mean", "max"]}
    scores = [
        GridSearchCV(pipeline, grid, cv=2, n_jobs=number)
        .fit(TEXTS * 4, LABELS * 4)
        .cv_results_["split0_test_score"]
        .tolist()
        for number in (1, 2)
    ]
    assert scores[0] == scores[1]


def test_tables_in_and_out():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": TEXTS, "stars": [1.0, 2.0, 3.0, 4.0]}, index=[7, 8, 9, 10])
    for column in ("text", ["text"]):
        columns = ColumnTransformer(
            [("elmo", ElmoVectorizer(MODEL), column), ("stars", StandardScaler(), ["stars"])]
        )
        found = columns.set_output(transform="pandas").fit_transform(frame)
        assert found.index.tolist() == [7, 8, 9, 10]
        assert found.columns[0] == "elmo__elmovectorizer0"
        vectors = found.filter(like="elmo__").to_numpy()
        assert np.array_equal(vectors, ElmoVectorizer(MODEL).fit_transform(TEXTS))
    tokens = ElmoTokenVectorizer(MODEL).set_output(transform="pandas").fit(frame["text"])
    assert tokens.transform(frame["text"]).index.value_counts()[7] == 6
    assert tokens.transform(TEXTS).index[-1] == len(tokens.tokens(TEXTS)) - 1
    assert tokens.transform(frame["text"]).columns[0] == "elmotokenvectorizer0"
    array = frame[["text"]].to_numpy()
    assert ElmoVectorizer(MODEL).fit_transform(array).shape[0] == 4


def test_columns_of_polars():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"text": TEXTS})
    expected = ElmoVectorizer(MODEL).fit_transform(TEXTS)
    for texts in (frame["text"], frame):
        found = ElmoVectorizer(MODEL).set_output(transform="polars").fit_transform(texts)
        assert isinstance(found, pl.DataFrame)
        assert np.array_equal(found.to_numpy(), expected)


def test_a_clone_has_the_settings_and_no_model():
    vectorizer = ElmoVectorizer(MODEL, pool="max", layers=[1]).fit(TEXTS)
    cloned = clone(vectorizer)
    assert cloned.get_params() == vectorizer.get_params()
    with pytest.raises(NotFittedError):
        cloned.transform(TEXTS)
    with pytest.raises(NotFittedError):
        ElmoTokenVectorizer().groups(TEXTS)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("A text.", "give a list of strings"),
        (None, "give a list of strings"),
        (np.zeros((3, 2)), r"array of shape \(3, 2\) where texts were expected"),
        ([None], "a sentence must be a string"),
        ([1.5], "a sentence must be a string"),
    ],
    ids=repr,
)
def test_what_is_not_text_is_refused(texts, message):
    with pytest.raises(elmore.ElmoreError, match=message):
        ElmoVectorizer(MODEL).fit_transform(texts)


@pytest.mark.parametrize("setting", [{"pool": "first"}, {"layers": 9}, {"state": "none"}], ids=repr)
def test_a_wrong_setting_is_refused(setting):
    with pytest.raises(elmore.ElmoreError, match=next(iter(setting))):
        ElmoVectorizer(MODEL, **setting).fit(TEXTS)
