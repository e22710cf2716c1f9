#!/bin/sh
# Train spaCy's entity recognizer on CoNLL-2003 without and with elmore, and test both.
#   sh recipes/spacy/train.sh CONLL2003 OUT
# CONLL2003 is a folder with eng.train, eng.testa and eng.testb.
set -e
data=$1
out=$2
here=$(dirname "$0")
python=${PYTHON:-python}
mkdir -p "$out"
for part in train testa testb; do
  # One sentence per doc; spaCy would make one doc of the sentences between two -DOCSTART- lines.
  grep -v '^-DOCSTART-' "$data/eng.$part" > "$out/$part.iob"
  "$python" -m spacy convert "$out/$part.iob" "$out" --converter ner --n-sents 1
done
for how in without with; do
  "$python" -m spacy init fill-config "$here/${how}_elmore.cfg" "$out/$how.cfg"
  "$python" -m spacy train "$out/$how.cfg" --output "$out/$how" \
    --paths.train "$out/train.spacy" --paths.dev "$out/testa.spacy"
  "$python" -m spacy evaluate "$out/$how/model-best" "$out/testb.spacy" --output "$out/$how.json"
done
