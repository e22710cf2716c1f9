"""The JSON of the routes about an index, the tokens of a sentence and trained tasks."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from elmore.serve.schemas import OwnRequest, Texts

Word = Annotated[str, Field(max_length=1000)]


class _Query(BaseModel):
    """The parameters of a GET request; they can be compared, to remember answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class WordsQuery(_Query):
    """Complete a word."""

    prefix: Word = Field(default="", description="The beginning of the words; case is ignored.")
    top: int = Field(default=20, ge=1, le=1000, description="The number of words.")
    skip_stop_words: bool = Field(
        default=False, description="Leave out stop words, punctuation and numbers."
    )


class UsesQuery(_Query):
    """Find the uses of a word."""

    word: Word = Field(min_length=1, description="The word.", examples=["bank"])
    match_case: bool = Field(default=False, description="Keep only uses with this spelling.")
    source: tuple[str, ...] = Field(default=(), description="Keep only uses in these files.")
    tag: tuple[str, ...] = Field(
        default=(), description="Keep only uses with these parts of speech."
    )
    limit: int = Field(
        default=500,
        ge=1,
        le=2000,
        description="The most uses to return; if there are more, an evenly spread sample.",
    )


class MapQuery(UsesQuery):
    """Draw the uses of a word."""

    layer: int = Field(ge=0, le=1000, description="A layer of the index; 0 is the token layer.")
    method: Literal["pca", "tsne"] = "pca"
    center_by_spelling: bool = Field(
        default=False, description="Subtract the mean vector of each spelling first."
    )


class GroupsQuery(UsesQuery):
    """Divide the uses of a word into groups."""

    layer: int = Field(ge=0, le=1000, description="A layer of the index; 0 is the token layer.")
    num_groups: int | None = Field(
        default=None, ge=1, le=12, description="Default: from 2 to 6, by silhouette."
    )
    center_by_spelling: bool = Field(
        default=False, description="Subtract the mean vector of each spelling first."
    )


class TypedToken(_Strict):
    """A token of a sentence that need not be in the index."""

    sentence: str | Texts = Field(description="A text, or a list of tokens.")
    token: int | str = Field(description="The token's position, from 0, or the word.")


AnyUse = Annotated[
    int | TypedToken,
    Field(
        description="The number of a use from /uses, or a typed one.",
        examples=[0, {"sentence": "They sat on the bank.", "token": "bank"}],
    ),
]


class NearestRequest(_Strict):
    """A request for the uses most similar to a given one."""

    use: AnyUse
    layer: int = Field(ge=0, le=1000, description="A layer of the index; 0 is the token layer.")
    top: int = Field(default=20, ge=1, le=500, description="The number of uses.")
    word: str | None = Field(default=None, description="Only uses of this word. Default: all.")
    match_case: bool = Field(default=False, description="Only uses of `word` as it is spelled.")
    source: Texts | None = Field(default=None, description="Only uses in these files.")
    tag: Texts | None = Field(default=None, description="Only these parts of speech.")


class CompareRequest(_Strict):
    """A request for the similarity of two uses."""

    use: AnyUse
    other: AnyUse


class SimilarityRequest(OwnRequest):
    """A request for the similarities of the tokens of one sentence."""

    input: str | Texts = Field(
        description="One sentence: a text or a list of tokens.", examples=["A bank is not a bank."]
    )


class PredictRequest(_Strict):
    """A request for the prediction of a trained task."""

    task: str | None = Field(default=None, description="A name from /info. Default: the first.")
    input: Any = Field(
        description="An example as for `elmore.predict`: a text; for roles a sentence and the "
        "position of its predicate; for questions an object with question and context; for pairs "
        "two texts.",
        examples=["John lives in Paris.", ["John lives in Paris.", 1]],
    )


class FoundWord(BaseModel):
    """A word and its number of uses."""

    word: str
    count: int


class WordsAnswer(BaseModel):
    """Words of the index, most frequent first."""

    words: list[FoundWord]


class FoundUse(BaseModel):
    """One use of a word, with its sentence."""

    number: int
    word: str = Field(description="As it is spelled here.")
    sentence: int
    position: int = Field(description="The position of the token in its sentence, from 0.")
    tokens: list[str]
    source: str = Field(description="The name of the text file.")
    document: int
    line: int = Field(description="The line of the text file that the sentence starts on, from 1.")
    tag: str | None = Field(description="The part of speech, if the text has them.")


class UsesAnswer(BaseModel):
    """The uses of a word, in the order of the text."""

    word: str
    total: int
    is_sample: bool = Field(
        description="Whether `uses` is a sample, because there are more than `limit`."
    )
    spellings: dict[str, int] = Field(description="How often each occurs in the index.")
    uses: list[FoundUse]


class MapAnswer(BaseModel):
    """A point in the plane for each use."""

    layer: int
    numbers: list[int] = Field(description="Of the uses.")
    method: str
    center_by_spelling: bool
    points: list[list[float]]
    explained: list[float] | None = Field(
        description="PCA: the share of the variance along each axis."
    )


class GroupWord(BaseModel):
    """A word that is more frequent near the uses of a group than near the others."""

    word: str
    num_inside: int
    num_outside: int


class FoundGroup(BaseModel):
    """A group of uses with similar vectors."""

    num_uses: int
    words: list[GroupWord]
    typical: int = Field(description="The number of its most central use.")


class GroupsAnswer(BaseModel):
    """Groups of uses, largest first; they need not be senses."""

    layer: int
    numbers: list[int] = Field(description="Of the uses.")
    labels: list[int] = Field(description="The group of each use, from 0.")
    groups: list[FoundGroup]
    silhouette: float | None
    center_by_spelling: bool


class TokenPlace(BaseModel):
    """A token in its sentence."""

    tokens: list[str]
    position: int
    number: int | None = Field(description="Null if it was typed.")


class NearUse(BaseModel):
    """A use, and its cosine with the one that was asked about."""

    similarity: float
    use: FoundUse


class NearestAnswer(BaseModel):
    """The most similar uses, best first."""

    layer: int
    query: TokenPlace
    uses: list[NearUse]


class CompareAnswer(BaseModel):
    """The cosine of two uses in each layer of the index."""

    use: TokenPlace
    other: TokenPlace
    layers: list[int]
    cosines: list[float]


class SimilarityAnswer(BaseModel):
    """The similarities of all pairs of tokens."""

    model: str
    tokens: list[str]
    cosines: list[list[list[float]]] = Field(description="(layers, tokens, tokens).")
    products: list[list[list[list[float]]]] = Field(
        description="(layers, layers, tokens, tokens): inner products, from which the cosines of "
        "any mix of layers follow."
    )


class PredictAnswer(BaseModel):
    """The prediction of a task."""

    task: str
    kind: str
    prediction: dict[str, Any] = Field(description="As `elmore predict` writes it.")
