"""Decide which pairs of texts are paraphrases, as in simple_elmo's example of classification.

python compare_pairs.py --input pairs.tsv --elmo MODEL [--batch 32]

Each line of the file has a label (0 or 1) and two texts, separated by tabs. The only feature is the
cosine of the texts' mean vectors; every pair is classified by a threshold from all others.
"""

import argparse
from pathlib import Path

import numpy as np
from simple_elmo import ElmoModel

parser = argparse.ArgumentParser()
parser.add_argument("--input", "-i", required=True)
parser.add_argument("--elmo", "-e", required=True)
parser.add_argument("--batch", "-b", type=int, default=32)
args = parser.parse_args()

rows = [line.split("\t") for line in Path(args.input).read_text().splitlines()]
labels = np.array([int(label) for label, _, _ in rows])

model = ElmoModel()
print(model.load(args.elmo, max_batch_size=args.batch))
first = model.get_elmo_vector_average([text.split() for _, text, _ in rows])
second = model.get_elmo_vector_average([text.split() for _, _, text in rows])
cosines = (first * second).sum(axis=1)


def best_threshold(values, wanted):
    """Return the cosine that separates the two classes best."""
    return max(values, key=lambda threshold: ((values >= threshold) == wanted).mean())


correct = 0
for number in range(len(rows)):
    others = np.arange(len(rows)) != number
    threshold = best_threshold(cosines[others], labels[others])
    correct += int((cosines[number] >= threshold) == labels[number])
print(f"accuracy {correct / len(rows):.3f} on {len(rows)} pairs")
print(f"mean cosine: {cosines[labels == 1].mean():.3f} of paraphrases")
print(f"             {cosines[labels == 0].mean():.3f} of other pairs")
