"""Measure the English model's perplexity on the text of each task, sentence by sentence.

python recipes/tasks/text_perplexity.py data parts > docs/results/tasks/perplexity.json
"""

import json
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from elmore.config import StatePolicy
from elmore.lm.language_model import load_language_model
from elmore.lm.perplexity import measure_losses
from elmore.tasks.fit.model import make_task
from elmore.tasks.fit.settings import load_settings

# Of dev data; with more, perplexity changes by only a few percent.
MAX_TOKENS = 15_000


def read_sentences(kind: str, path: Path) -> Iterator[list[str]]:
    """Yield the distinct sentences of a task's file, up to a number of tokens."""
    task = make_task(load_settings(kind))
    roles = chain.from_iterable(task.find_sentences([example]) for example in task.read(path))
    num_tokens = 0
    for sentence in dict.fromkeys(map(tuple, chain.from_iterable(roles))):
        yield list(sentence)
        num_tokens += len(sentence)
        if num_tokens >= MAX_TOKENS:
            return


def main() -> None:
    """Print perplexities and rates of unknown words by comparison."""
    data, parts = map(Path, sys.argv[1:])
    texts = {
        "squad": ("questions", parts / "squad" / "dev.json"),
        "snli": ("entailment", parts / "snli" / "dev.tsv"),
        "srl": ("roles", data / "srl_ewt" / "dev.jsonl"),
        "coref": ("coreference", parts / "ontogum" / "dev"),
        "ner": ("entities", data / "conll2003" / "eng.testa"),
        "sst": ("sentiment", data / "sst" / "dev.txt"),
        "tags": ("tags", data / "ud_ewt" / "en_ewt-ud-dev.conllu"),
    }
    model = load_language_model(None)
    found = {}
    for name, (kind, path) in texts.items():
        totals = measure_losses(
            model.elmo,
            model.softmax,
            model.words,
            documents=([sentence] for sentence in read_sentences(kind, path)),
            state=StatePolicy.RESET,
        )
        found[name] = {"perplexity": totals.perplexity, "unknown_share": totals.unknown_share}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
