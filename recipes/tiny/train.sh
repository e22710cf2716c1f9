#!/bin/sh
# Make the text, train the tiny model on it, and put the model where the tests find it:
#
#     sh recipes/tiny/train.sh [WORK]
#
# Takes a minute on one core. WORK (out/tiny) gets the text, the corpus and the run; the model's
# weights are stored in half precision.
set -eu
cd "$(dirname "$0")/../.."
work=${1:-out/tiny}
export OMP_NUM_THREADS=1

mkdir -p "$work"
.venv/bin/python recipes/tiny/make_text.py "$work/text.txt"
.venv/bin/elmore prepare "$work/text.txt" --tokenized --processes 1 --restart --out "$work/corpus"
.venv/bin/elmore pretrain recipes/tiny/settings.toml --corpus "$work/corpus" --restart --out "$work/run"
rm -rf tests/models/tiny
mkdir -p tests/models
.venv/bin/elmore convert "$work/run/model" --store f16 --out tests/models/tiny
