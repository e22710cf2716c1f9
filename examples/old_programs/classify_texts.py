"""Classify texts by the mean of their ELMo vectors, with a linear classifier.

python classify_texts.py train.tsv test.tsv options.json weights.hdf5

Each line of the two files has a label, a tab and a text.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from allennlp.commands.elmo import ElmoEmbedder

train_path, test_path, options_file, weight_file = sys.argv[1:]
elmo = ElmoEmbedder(options_file, weight_file)


def read(path):
    """Return the labels, and the tokens of each text."""
    rows = [line.split("\t") for line in Path(path).read_text().splitlines()]
    return [label for label, _ in rows], [text.split() for _, text in rows]


def text_vectors(texts):
    """Return one vector per text: the mean over layers and tokens."""
    return np.stack([layers.mean(axis=(0, 1)) for layers in elmo.embed_sentences(texts, 16)])


train_labels, train_texts = read(train_path)
test_labels, test_texts = read(test_path)
classes = sorted(set(train_labels))
targets = torch.tensor([classes.index(label) for label in train_labels])
features = torch.from_numpy(text_vectors(train_texts))

torch.manual_seed(0)
classifier = torch.nn.Linear(features.shape[1], len(classes))
optimizer = torch.optim.Adam(classifier.parameters(), lr=0.1)
for _ in range(100):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(classifier(features), targets).backward()
    optimizer.step()

with torch.no_grad():
    predicted = classifier(torch.from_numpy(text_vectors(test_texts))).argmax(dim=1).tolist()
correct = sum(
    classes[number] == label for number, label in zip(predicted, test_labels, strict=True)
)
print(f"accuracy {correct / len(test_labels):.3f} on {len(test_labels)} texts")
