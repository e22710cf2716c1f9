#!/bin/sh
# Train spaCy's entity recognizer on CoNLL-2003 without and with elmore, and test both.
#   sh recipes/spacy/train.sh CONLL2003 OUT [LINES]
# CONLL2003 is a folder with eng.train, eng.testa and eng.testb. With LINES, only the first lines of
# eng.train and eng.testa are used.
set -e
data=$1
out=$2
lines=${3:-10000000}
here=$(dirname "$0")
python=${PYTHON:-python}
mkdir -p "$out"
for part in train testa testb; do
  kept=$lines
  if [ $part = testb ]; then kept=10000000; fi
  # One sentence per doc; spaCy would make one doc of the sentences between two -DOCSTART- lines.
  head -n "$kept" "$data/eng.$part" | grep -v '^-DOCSTART-' > "$out/$part.iob"
  "$python" -m spacy convert "$out/$part.iob" "$out" --converter ner --n-sents 1
done
for how in without with; do
  "$python" -m spacy init fill-config "$here/${how}_elmore.cfg" "$out/$how.cfg"
  "$python" -m spacy train "$out/$how.cfg" --output "$out/$how" \
    --paths.train "$out/train.spacy" --paths.dev "$out/testa.spacy"
  "$python" -m spacy evaluate "$out/$how/model-best" "$out/testb.spacy" --output "$out/$how.json"
done
