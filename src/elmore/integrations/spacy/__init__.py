"""elmore inside spaCy: the component `elmore`, and `elmore.Tok2Vec.v1` for training pipelines."""

from elmore.integrations.required import require

require("spacy", extra="spacy", at_least=(3, 8), below=(4,))

from elmore.integrations.spacy.component import DocEmbedder, make_component  # noqa: E402
from elmore.integrations.spacy.tok2vec import make_tok2vec  # noqa: E402

__all__ = ["DocEmbedder", "make_component", "make_tok2vec"]
