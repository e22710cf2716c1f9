"""The vectors that a task network gets: `[x; ELMo]` at its input and `[h; ELMo]` at its output.

Shapes: B sentences, T tokens, V words, X a token's own vector, D a biLM's layer, H a hidden state.
"""

import torch
from torch import Tensor, nn

from elmore.tasks.inputs.char_filters import CharFilters
from elmore.tasks.inputs.elmo_vectors import ElmoVectors
from elmore.tasks.inputs.token_batch import TokenBatch
from elmore.tasks.inputs.word_table import WordTable


class TokenInput(nn.Module):
    """Word vectors, characters and ELMo vectors, all optional; the same in all tasks."""

    def __init__(
        self,
        *,
        words: Tensor | None = None,  # (V, X) with the two special rows first
        trains_words: bool = True,
        num_trained_words: int | None = None,
        characters: CharFilters | None = None,
        below: ElmoVectors | None = None,
        above: ElmoVectors | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.words: WordTable | None = None
        if words is not None:
            num_trained = len(words) if num_trained_words is None else num_trained_words
            self.words = WordTable(words, num_trained=num_trained if trains_words else 0)
        self.characters = characters
        self.elmo_below = below
        self.elmo_above = above
        self.dropout = nn.Dropout(dropout)
        if self.input_dim == 0:
            raise ValueError("a task network needs words, characters or ELMo vectors to read")

    @property
    def input_dim(self) -> int:
        """Width of the output of `below`."""
        parts = (self.words, self.characters, self.elmo_below)
        return sum(part.output_dim for part in parts if part is not None)

    @property
    def above_dim(self) -> int:
        """The width that `above` adds to a hidden state; 0 without ELMo there."""
        return 0 if self.elmo_above is None else self.elmo_above.output_dim

    def below(self, tokens: TokenBatch) -> Tensor:
        """Return (B, T, input_dim), zero at padding."""
        parts = []
        if self.words is not None:
            parts.append(self.words(tokens.words))
        if self.characters is not None:
            parts.append(self.characters(tokens.spellings)[tokens.spelled])
        plain = [self.dropout(torch.cat(parts, dim=-1))] if parts else []
        if self.elmo_below is not None:  # which has its own dropout
            plain.append(self.elmo_below(_need_layers(tokens), tokens.mask))
        return torch.cat(plain, dim=-1) * tokens.mask.unsqueeze(-1)

    def above(self, hidden: Tensor, tokens: TokenBatch) -> Tensor:
        """Return (B, T, H + above_dim): hidden states, and ELMo vectors if used there."""
        if self.elmo_above is None:
            return hidden
        vectors = self.elmo_above(_need_layers(tokens), tokens.mask)
        return torch.cat([hidden, vectors], dim=-1)

    def penalty(self, strength: float) -> Tensor:
        """Return `strength * |weights|^2` of the mixes, for the loss."""
        mixes = [mix for mix in (self.elmo_below, self.elmo_above) if mix is not None]
        return torch.stack([torch.zeros(()), *(mix.penalty(strength).cpu() for mix in mixes)]).sum()


def _need_layers(tokens: TokenBatch) -> Tensor:
    if tokens.layers is None:
        raise ValueError("this network uses ELMo vectors, but its batch has no layers of a biLM")
    return tokens.layers
