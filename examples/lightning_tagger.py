"""Train the tagger of torch_tagger.py with PyTorch Lightning.

python examples/lightning_tagger.py [TAGGED] [MODEL]

Lightning brings the loop, checkpoints, devices and logs: pip install 'elmore[lightning]'.
"""

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_tagger import NUM_EPOCHS, TAGGED, Tagger, make_loaders, read_tagged

import elmore

elmore.require_extra("lightning", needed_for="this example")

import lightning  # noqa: E402


class LightningTagger(lightning.LightningModule):
    """The same network, with its training and validation steps."""

    def __init__(self, model: str | None, *, num_tags: int) -> None:
        super().__init__()
        self.tagger = Tagger(model, num_tags=num_tags)

    def training_step(self, batch: Any) -> Tensor:
        """Return the loss of a batch."""
        sentences, tags = batch
        return cross_entropy(self.tagger(sentences).flatten(0, 1), tags.flatten())

    def validation_step(self, batch: Any) -> None:
        """Log the share of tokens with the right tag."""
        sentences, tags = batch
        right = self.tagger(sentences).argmax(dim=-1) == tags
        self.log("accuracy", right[tags >= 0].float().mean(), batch_size=int((tags >= 0).sum()))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Train the mix and the linear layer; the biLM is frozen."""
        weights = [weight for weight in self.parameters() if weight.requires_grad]
        return torch.optim.AdamW(weights, lr=0.01)


def main(tagged: str = str(TAGGED), model: str | None = None) -> None:
    """Train, and print the accuracy on held-out sentences."""
    lightning.seed_everything(0, verbose=False)
    examples, tags = read_tagged(Path(tagged))
    network = LightningTagger(model, num_tags=len(tags))
    train, heldout = make_loaders(network.tagger, examples)
    trainer = lightning.Trainer(
        max_epochs=NUM_EPOCHS, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(network, train, heldout)
    print(
        f"held-out accuracy {trainer.validate(network, heldout, verbose=False)[0]['accuracy']:.3f}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
