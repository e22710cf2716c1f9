"""Embed the proteins of a FASTA file, one vector per residue and one per protein.

Written as programs around SeqVec are: a residue is a token, the three layers are added up.

python protein_vectors.py proteins.fasta options.json weights.hdf5 OUT.npz
"""

import sys
from pathlib import Path

import numpy as np
import torch
from allennlp.commands.elmo import ElmoEmbedder


def read_fasta(path):
    """Return the sequence of each protein by its id; rare residues become X."""
    sequences = {}
    for line in Path(path).read_text().splitlines():
        if line.startswith(">"):
            name = line[1:].split()[0]
            sequences[name] = ""
        else:
            sequences[name] += line.strip().upper().translate(str.maketrans("UZOB", "XXXX"))
    return sequences


fasta, options, weights, out = sys.argv[1:]
cuda_device = 0 if torch.cuda.is_available() else -1
embedder = ElmoEmbedder(options_file=options, weight_file=weights, cuda_device=cuda_device)

proteins = read_fasta(fasta)
by_length = sorted(proteins, key=lambda name: len(proteins[name]))
vectors = {}
for name, layers in zip(
    by_length, embedder.embed_sentences([list(proteins[n]) for n in by_length], 2), strict=True
):
    residues = torch.tensor(layers).sum(dim=0)
    vectors[name] = residues.mean(dim=0).numpy()
    print(name, tuple(residues.shape))

np.savez(out, **vectors)
print("wrote", len(vectors), "proteins")
