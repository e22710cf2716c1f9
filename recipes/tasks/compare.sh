#!/bin/sh
# Every comparison of docs/tasks.md: sh recipes/tasks/compare.sh DATA PARTS OUT
# Each takes one core, so that two may run side by side.
set -e
data=$1 parts=$2 out=$3
words=$data/glove/glove.6B.50d.top100k.f16.npz
export OMP_NUM_THREADS=1

compare() {
  name=$1; shift
  elmore compare "$@" --words "$words" --out "$out/$name"
}

compare ner ner --data "$data/conll2003"
compare sst sentiment --data "$data/sst"
compare sst_variants sentiment --data "$data/sst" --variants without,input,output,both,top --seeds 2
compare sst_shares sentiment --data "$data/sst" --shares 1,10
compare coref coreference --data "$parts/ontogum" --set training.max_epochs=6
compare snli entailment --data "$parts/snli"
compare srl roles --data "$data/srl_ewt" \
    --set training.max_examples=3000 --set training.batch_size=16 --set training.max_epochs=10
