"""Train a part-of-speech tagger on ELMo vectors in a plain PyTorch loop.

python examples/torch_tagger.py [TAGGED] [MODEL]

TAGGED has one sentence per line, of token/TAG; without it, a few sentences are used. The last
fifth of the sentences is held out. Without MODEL, the English model in the package is used.
"""

import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

import elmore
from elmore.integrations.torch import SentenceCollate

TAGGED = Path(__file__).parent / "tagged.txt"
NUM_EPOCHS = 30

Example = tuple[list[str], list[int]]  # tokens, and the number of each token's tag


def read_tagged(path: Path) -> tuple[list[Example], list[str]]:
    """Return the sentences, and the names of the tags."""
    lines = path.read_text(encoding="utf-8").splitlines()
    sentences = [[pair.rsplit("/", 1) for pair in line.split()] for line in lines if line.strip()]
    tags = sorted({tag for sentence in sentences for _, tag in sentence})
    examples = [
        ([token for token, _ in sentence], [tags.index(tag) for _, tag in sentence])
        for sentence in sentences
    ]
    return examples, tags


class Tagger(nn.Module):
    """A frozen biLM, a trained mix of its layers, and a linear layer."""

    def __init__(self, model: str | None, *, num_tags: int) -> None:
        super().__init__()
        self.elmo = elmore.Elmo(elmore.load(model), dropout=0.2)
        self.output = nn.Linear(self.elmo.output_dim, num_tags)

    def forward(self, sentences: object) -> Tensor:
        """Return (sentences, tokens, tags) scores."""
        return self.output(self.elmo(sentences).representations[0])


def make_loaders(tagger: Tagger, examples: list[Example]) -> tuple[DataLoader, DataLoader]:
    """Return loaders of the training examples and of those that are held out."""
    cut = len(examples) * 4 // 5
    collate = SentenceCollate(tagger.elmo)
    return (
        DataLoader(examples[:cut], batch_size=4, shuffle=True, collate_fn=collate),
        DataLoader(examples[cut:], batch_size=4, collate_fn=collate),
    )


@torch.no_grad()
def measure(tagger: Tagger, loader: DataLoader) -> float:
    """Return the share of tokens with the right tag."""
    tagger.eval()
    pairs = [(tagger(batch).argmax(dim=-1), tags) for batch, tags in loader]
    right = sum(int((found == tags).sum()) for found, tags in pairs)
    return right / sum(int((tags >= 0).sum()) for _, tags in pairs)  # -100 is padding


def main(tagged: str = str(TAGGED), model: str | None = None) -> None:
    """Train, and print the accuracy on held-out sentences."""
    torch.manual_seed(0)
    examples, tags = read_tagged(Path(tagged))
    tagger = Tagger(model, num_tags=len(tags))
    train, heldout = make_loaders(tagger, examples)
    weights = [weight for weight in tagger.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=0.01)
    for _ in range(NUM_EPOCHS):
        tagger.train()
        for batch, labels in train:
            loss = cross_entropy(tagger(batch).flatten(0, 1), labels.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.3f}, held-out accuracy {measure(tagger, heldout):.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
