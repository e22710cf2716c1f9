#!/bin/sh
# Every comparison of docs/tasks.md: sh recipes/tasks/compare.sh DATA PARTS OUT
# One core each; of several at a time, none disturbs another's numbers.
set -e
data=$1 parts=$2 out=$3
words=$data/glove/glove.6B.50d.top100k.f16.npz
export OMP_NUM_THREADS=1

compare() {
  name=$1; shift
  elmore compare "$@" --words "$words" --seeds 3 --out "$out/$name"
}

compare ner ner --data "$data/conll2003" --variants without,input
compare sst sentiment --data "$data/sst" --variants without,input,output,both,top
compare coref coreference --data "$parts/ontogum" --variants without,input
compare snli entailment --data "$parts/snli" --variants without,input
compare srl roles --data "$data/srl_ewt" --variants without,input --set training.max_examples=8000
compare squad questions --data "$parts/squad" --variants without,input \
    --set training.max_examples=5000
compare tags tags --data "$data/ud_ewt" --variants without,input,output,both,top
