"""elmore inside spaCy: the component `elmore`, and `elmore.Tok2Vec.v1` for training pipelines."""

from elmore import require_extra

require_extra("spacy", needed_for="elmore.integrations.spacy")

from elmore.integrations.spacy.component import DocEmbedder, make_component  # noqa: E402
from elmore.integrations.spacy.tok2vec import make_tok2vec  # noqa: E402

__all__ = ["DocEmbedder", "make_component", "make_tok2vec"]
