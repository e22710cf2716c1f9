"""Compare initial states for single sentences: zeros and several means of states.

    python -m benchmarks.rest_states MODEL CORPUS TEXT ... [--max-tokens 20000]

MODEL is a model folder with a softmax, CORPUS the prepared corpus it was trained on, TEXT any texts
that it was not trained on, from which sentences are sampled evenly. Means are over the states at
sentence ends, in the beginnings of the corpus's documents or in stretches spread over its tokens.
Prints a Markdown table of perplexities, each sentence read on its own.
"""

import argparse
import math
from pathlib import Path

from torch import Tensor

from elmore.config import StatePolicy
from elmore.corpus.corpus import open_corpus
from elmore.corpus.sample import sample_documents, sample_stretches
from elmore.lm.language_model import LanguageModel, load_language_model
from elmore.lm.perplexity import measure_losses
from elmore.lm.rest_state import compute_rest_state
from elmore.model.state import repeat_state
from elmore.text.files import guess_form, read_sentences

State = tuple[Tensor, Tensor]


def find_states(model: LanguageModel, corpus_path: Path, *, num_tokens: int) -> dict[str, State]:
    """Return the states to compare, by their names."""
    bilm, train = model.elmo.bilm, open_corpus(corpus_path).train
    samples = {
        "documents": sample_documents(train, max_tokens=num_tokens),
        "tokens": sample_stretches(train, max_tokens=num_tokens),
    }
    means = {
        name: compute_rest_state(bilm, model.elmo.speller, sample)
        for name, sample in samples.items()
    }
    states = {"the model's own": (bilm.initial_hidden, bilm.initial_cell)}
    states["zeros"] = scale(means["tokens"], 0.0)
    for name, mean in means.items():
        states[f"mean by {name}"] = mean
        states[f"half of it ({name})"] = scale(mean, 0.5)
    return states


def scale(state: State, strength: float) -> State:
    return state[0] * strength, state[1] * strength


def take_sentences(path: Path, *, max_tokens: int) -> list[list[str]]:
    """Return sentences spread over a text, about this many tokens in all."""
    sentences = [sentence for sentence in read_sentences(path, form=guess_form(path)) if sentence]
    step = math.ceil(sum(map(len, sentences)) / max_tokens)
    return sentences[::step]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--max-tokens", type=int, default=20_000, help="Of each text.")
    parser.add_argument("--rest-tokens", type=int, default=50_000, help="That a mean is taken of.")
    arguments = parser.parse_args()
    model = load_language_model(arguments.model)
    states = find_states(model, arguments.corpus, num_tokens=arguments.rest_tokens)
    print(f"| start | {' | '.join(path.name for path in arguments.texts)} |")
    print(f"|---|{'---:|' * len(arguments.texts)}")
    texts = [take_sentences(path, max_tokens=arguments.max_tokens) for path in arguments.texts]
    for name, state in states.items():
        found = [
            measure_losses(
                model.elmo,
                model.softmax,
                model.words,
                documents=[[sentence] for sentence in sentences],
                state=StatePolicy.RESET,
                initial_state=repeat_state(*state, 1),
            ).perplexity
            for sentences in texts
        ]
        print(f"| {name} | {' | '.join(f'{value:.1f}' for value in found)} |", flush=True)


if __name__ == "__main__":
    main()
