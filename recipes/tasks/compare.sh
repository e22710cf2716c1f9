#!/bin/sh
# Every comparison of docs/results/tasks.md: sh recipes/tasks/compare.sh DATA PARTS OUT
# Each uses one core, so that two can run in parallel. A tenth of the data is repeated until an epoch
# has as many steps as an epoch of all the data.
set -e
data=$1 parts=$2 out=$3
words=$data/glove/glove.6B.50d.top100k.f16.npz
export OMP_NUM_THREADS=1

compare() {
  name=$1; shift
  elmore compare "$@" --words "$words" --out "$out/$name"
}

compare ner ner --data "$data/conll2003"
compare tags tags --data "$data/ud_ewt"
compare sst sentiment --data "$data/sst"
compare sst_variants sentiment --data "$data/sst" --variants top,output,both
compare sst_shares sentiment --data "$data/sst" --shares 10 --set training.min_epoch_steps=267
compare sst_domain sentiment --data "$data/sst" --variants domain --seeds 1
compare coref coreference --data "$parts/ontogum" --set training.max_epochs=6
compare snli entailment --data "$parts/snli"
compare snli_variants entailment --data "$parts/snli" --variants top,output --seeds 1
compare squad questions --data "$parts/squad" --set training.max_examples=10000 \
    --set training.batch_size=8 --set training.learning_rate=0.002 --set training.max_epochs=3

compare_roles() {
  name=$1; shift
  compare "$name" roles --data "$data/srl_ewt" "$@" --set training.max_examples=3000 \
      --set training.batch_size=16 --set training.max_epochs=10
}
compare_roles srl
compare_roles srl_variants --variants top,output,both
compare_roles srl_shares --shares 10 --set training.min_epoch_steps=188
