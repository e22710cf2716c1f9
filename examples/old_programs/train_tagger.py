"""Train a part-of-speech tagger with an ELMo layer, save it and load it again.

python train_tagger.py train.conll options.json weights.hdf5 tagger.th

Each line of the file has a word and its tag; a blank line ends a sentence.
"""

import sys
from pathlib import Path

import torch
from allennlp.modules.elmo import Elmo, batch_to_ids
from torch import nn

data, options_file, weight_file, saved = sys.argv[1:]

sentences = [
    [line.split() for line in block.splitlines()]
    for block in Path(data).read_text().strip().split("\n\n")
]
words = [[word for word, _ in sentence] for sentence in sentences]
tags = sorted({tag for sentence in sentences for _, tag in sentence})


class Tagger(nn.Module):
    """An LSTM on top of ELMo vectors."""

    def __init__(self):
        super().__init__()
        self.elmo = Elmo(options_file, weight_file, num_output_representations=1, dropout=0.5)
        self.lstm = nn.LSTM(self.elmo.get_output_dim(), 16, bidirectional=True, batch_first=True)
        self.output = nn.Linear(32, len(tags))

    def forward(self, character_ids):
        """Return the scores of each tag, and the mask."""
        embeddings = self.elmo(character_ids)
        hidden, _ = self.lstm(embeddings["elmo_representations"][0])
        return self.output(hidden), embeddings["mask"]


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.02)
losses = []
for epoch in range(15):
    total = 0.0
    for start in range(0, len(sentences), 4):
        scores, mask = model(batch_to_ids(words[start : start + 4]))
        gold = [tags.index(tag) for sentence in sentences[start : start + 4] for _, tag in sentence]
        loss = nn.functional.cross_entropy(scores[mask.bool()], torch.tensor(gold))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    losses.append(total)
    print(f"epoch {epoch + 1}: loss {total:.3f}")

torch.save(model.state_dict(), saved)
model = Tagger()
model.load_state_dict(torch.load(saved))
print("weights of the layers:", [p.item() for p in model.elmo.scalar_mix_0.scalar_parameters])
