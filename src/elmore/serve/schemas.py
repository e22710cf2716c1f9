"""The JSON of requests and answers, as pydantic models; /openapi.json is made from them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

# After the first wrong item, the rest of a list is not looked at.
Texts = Annotated[list[str], Field(fail_fast=True)]
Inputs = str | Annotated[list[str | Texts], Field(fail_fast=True)]

_INPUTS = Field(
    description="A text, or a list of texts and of lists of token strings. A text is one "
    "sentence and is split into tokens; lists of tokens are used as they are.",
    examples=["The bank of the river.", ["One.", "Two."], [["The", "bank"]]],
)
_MODEL = Field(default=None, description="A name from /v1/models. Default: the first model.")


class _Asked(BaseModel):
    model_config = ConfigDict(strict=True)

    model: str | None = _MODEL


class OwnRequest(_Asked):
    """Unlike other servers' requests, it has no fields that we do not know."""

    model_config = ConfigDict(strict=True, extra="forbid")


class EmbeddingsRequest(_Asked):
    """OpenAI's request for embeddings."""

    input: Inputs = _INPUTS
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(
        default=None, description="Only the model's own width is accepted: nothing is cut off."
    )
    user: str | None = Field(default=None, description="Accepted and ignored.")
    normalize: bool = Field(default=True, description="Scale every vector to length 1.")


class _TeiRequest(_Asked):
    inputs: Inputs = _INPUTS
    truncate: bool | None = Field(
        default=False,
        description="Shorten inputs that are too long, and count them in the header "
        "x-truncated-inputs. Otherwise they are refused with status 413.",
    )
    truncation_direction: Literal["Left", "Right", "left", "right"] = "Right"
    prompt_name: str | None = Field(default=None, description="Must be null: there are no prompts.")


class EmbedRequest(_TeiRequest):
    """A request of text-embeddings-inference for one vector per input."""

    normalize: bool = Field(default=True, description="Scale every vector to length 1.")
    dimensions: int | None = Field(
        default=None, description="Only the model's own width is accepted: nothing is cut off."
    )


class EmbedAllRequest(_TeiRequest):
    """A request of text-embeddings-inference for one vector per token."""


class LayersRequest(OwnRequest):
    """A request for the layers of every token."""

    inputs: Inputs = _INPUTS
    layers: (
        Literal["all", "average", "sum", "top"] | int | Annotated[list[int], Field(fail_fast=True)]
    ) = Field(
        default="all",
        description="All layers, their average or sum, the top one, or layer numbers.",
    )
    mix: Annotated[list[float], Field(fail_fast=True)] | None = Field(
        default=None,
        description="One weight per layer: the weighted sum of all layers, instead of `layers`.",
    )
    format: Literal["json", "base64", "raw"] = Field(
        default="json",
        description="json: nested lists. base64: the numbers of each sentence, little-endian. raw: "
        "a line of JSON, then the numbers of all sentences, little-endian.",
    )
    dtype: Literal["f32", "f16"] = Field(
        default="f32", description="The format of the numbers in base64 and raw."
    )


class TokenizeRequest(OwnRequest):
    """A request for tokens."""

    inputs: str | Texts = Field(description="A text or a list of texts.")


class ScoreRequest(OwnRequest):
    """A request for the log-probability of every token."""

    inputs: Inputs = _INPUTS


class FillRequest(OwnRequest):
    """A request for the words that fit in a gap."""

    input: str | Texts = Field(
        description="One sentence with one gap, written ___; a text or a list of tokens.",
        examples=["He opened the ___ and went in."],
    )
    top: int = Field(default=10, ge=1, le=50, description="The number of words.")


class OpenAIUsage(BaseModel):
    """Tokens of a request."""

    prompt_tokens: int
    total_tokens: int


class OpenAIEmbedding(BaseModel):
    """One vector."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingsAnswer(BaseModel):
    """OpenAI's answer."""

    object: Literal["list"]
    data: list[OpenAIEmbedding]
    model: str
    usage: OpenAIUsage


class TokenizedSentence(BaseModel):
    """The tokens of one input; offsets count characters (code points)."""

    tokens: list[str]
    offsets: list[tuple[int, int]] | None = Field(
        description="Start and end of each token; null if the input was a list of tokens."
    )


class TokenizeAnswer(BaseModel):
    """The tokens of each input."""

    model: str
    sentences: list[TokenizedSentence]


class SentenceLayers(TokenizedSentence):
    """The vectors of one input."""

    shape: list[int] = Field(description="(layers, tokens, width), or (tokens, width).")
    vectors: list[Any] | str


class LayersAnswer(BaseModel):
    """The layers of each input."""

    model: str
    layers: str
    dtype: str
    sentences: list[SentenceLayers]


class ScoredSentence(TokenizedSentence):
    """Natural log-probabilities, one per token from each direction."""

    is_known: list[bool] = Field(description="False: outside the vocabulary, scored as <UNK>.")
    forward_lm: list[float] = Field(description="Given all tokens before it.")
    backward_lm: list[float] = Field(description="Given all tokens after it.")
    end: float = Field(description="The end of the sentence, given all tokens.")
    begin: float = Field(description="The beginning of the sentence, given all tokens.")
    forward_total: float
    backward_total: float


class ScoreAnswer(BaseModel):
    """The scores of each input."""

    model: str
    sentences: list[ScoredSentence]


class FilledGap(BaseModel):
    """A word for the gap."""

    word: str
    forward_lm: float = Field(description="Log-probability of the whole sentence with this word.")
    backward_lm: float
    probability: float = Field(description="Among the candidates.")


class FillAnswer(BaseModel):
    """The words for the gap, best first."""

    model: str
    tokens: list[str]
    fillings: list[FilledGap]


class ErrorAnswer(BaseModel):
    """Why a request was refused. Routes under /v1 use OpenAI's form instead."""

    error: str | dict[str, Any]
    error_type: str | None = None
    field: str | None = None
