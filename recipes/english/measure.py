"""Evaluate the English model, and write the results as JSON.

    python recipes/english/measure.py MODEL DATA TEXT OUT.json [PART ...]

DATA has `ud_ewt`, `wsd` and `glove`; TEXT is what cut_text.py wrote. Parts: perplexity, tags,
senses, words; without one, all. Parts measured before stay in OUT.json.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np

import elmore
from elmore.config import StatePolicy
from elmore.embed.embedder import Embedder
from elmore.lm.language_model import load_language_model
from elmore.lm.perplexity import measure_losses
from elmore.probes import layer_views, nearest_sense
from elmore.probes.nearest_sense import SenseSums, SenseUse, find_static_uses, find_uses
from elmore.probes.neighbor_agreement import WordUse, collect_word_uses, measure_agreement
from elmore.probes.sense_data import SenseSentence, read_first_senses, read_sense_sentences
from elmore.probes.tagged_data import TaggedSentence, read_tagged
from elmore.read.documents import zero_state
from elmore.text.batches import Document
from elmore.text.files import TextForm, read_sentences
from elmore.text.word_vectors import WordVectors, read_word_vectors

WORDS = ("bank", "play", "spring", "bat", "match", "light")
WORDS += ("mean", "fine", "court", "date", "pitch", "right")
PARTS = ("perplexity", "tags", "senses", "words")
TEST_SETS = ("senseval2", "senseval3", "semeval2007", "semeval2013", "semeval2015")
SHARED_TEXTS = ("books", "articles")
TUNING_SET = "semeval2007"
"""The usual development set of the field."""
IN_ORDER = ", in order"
LEAST_USES = 5
"""Words with fewer uses are left out."""


SenseAnswers = Mapping[str, Sequence[nearest_sense.Answer]]  # by test set


class Measurement:
    """A model, the data, and the four evaluations."""

    def __init__(
        self, *, model: str, data: Path, text: Path, wordnet: Path, max_tokens: int | None
    ) -> None:
        self.model = model
        self.data = data
        self.text = text
        self.wordnet = wordnet
        self.max_tokens = max_tokens
        self.embedder: Embedder = elmore.load(model)
        self.glove = read_word_vectors(data / "glove" / "glove.6B.50d.top100k.f16.npz")

    def measure_perplexity(self) -> dict[str, Any]:
        """Perplexity of both directions on each held-out text.

        Books and articles, on which all editions of the model are compared, are also measured
        without carried state. Bits per character compare models with different vocabularies.
        """
        language_model = load_language_model(self.model)
        elmo = language_model.elmo
        ways: dict[str, dict[str, Any]] = {
            "carried": {"state": StatePolicy.DOCUMENT},
            "rest": {"state": StatePolicy.RESET},
            "zeros": {"state": StatePolicy.RESET, "initial_state": zero_state(elmo.bilm)},
        }
        results = {}
        for name in list_heldout(self.text):
            documents = read_documents(self.text / f"heldout_{name}.txt")
            if self.max_tokens is not None:
                share = self.max_tokens // len(documents)
                documents = [cut_document(document, max_tokens=share) for document in documents]
            for way, settings in ways.items():
                if way != "carried" and name not in SHARED_TEXTS:
                    continue
                totals = measure_losses(
                    elmo,
                    language_model.softmax,
                    language_model.words,
                    documents=documents,
                    **settings,
                )
                results[f"{name}, {way}"] = {
                    "forward": totals.forward_perplexity,
                    "backward": totals.backward_perplexity,
                    "both": totals.perplexity,
                    "bits_per_character": totals.bits_per_character,
                    "tokens": totals.num_tokens,
                    "unknown_share": totals.unknown_share,
                }
        return results

    def measure_tags(self) -> list[dict[str, Any]]:
        """Universal parts of speech by a linear probe of each layer."""
        parts = {
            part: read_tagged(self.data / "ud_ewt" / f"en_ewt-ud-{part}.conllu")
            for part in ("train", "dev", "test")
        }
        scores = layer_views.score_views(
            layer_views.TaggedParts(**parts), self.embedder, words=self.glove
        )
        return [asdict(score) for score in scores]

    def measure_senses(self) -> dict[str, Any]:
        """Word senses by the nearest mean in SemCor, on five test sets and all together.

        Each sentence is read by itself, and once more in order, with the state of those before it.
        """
        first_senses = read_first_senses(self.wordnet)
        tests = {name: list(self.read_test(name)) for name in TEST_SETS}
        num_layers = self.embedder.num_layers
        mixes = {str(weights): weights for weights in list_mixes(num_layers)}
        views = nearest_sense.make_views(num_layers, mixes=mixes)
        own = score_tests(
            self.read_semcor(),
            tests,
            views=views,
            first_senses=first_senses,
            find=lambda sentences: find_uses(
                nearest_sense.embed_sentences(self.embedder, sentences)
            ),
        )
        in_order = score_tests(
            self.read_semcor(),
            tests,
            views=nearest_sense.make_views(num_layers),
            first_senses=first_senses,
            find=lambda sentences: find_uses(
                nearest_sense.embed_sentences(
                    elmore.load(self.model, state=StatePolicy.DOCUMENT), sentences
                )
            ),
        )
        baselines = (nearest_sense.MOST_FREQUENT, nearest_sense.FIRST_SENSE)
        f1 = own.f1
        best = max(mixes, key=lambda name: f1[name][TUNING_SET])
        chosen = {name: scores for name, scores in f1.items() if name not in mixes}
        chosen["mix chosen on " + TUNING_SET] = f1[best]
        static = score_tests(
            self.read_semcor(),
            tests,
            views={"GloVe of the words around": [1.0]},
            first_senses=first_senses,
            find=partial(find_static_uses, words=self.glove),
        )
        sizes = {name: sum(len(s.targets) for s in test) for name, test in tests.items()}
        return {
            "mix": mixes[best],
            "num_targets": sizes,
            "f1": static.f1
            | chosen
            | {name + IN_ORDER: x for name, x in in_order.f1.items() if name not in baselines},
            "prior": static.prior
            | {name: scores for name, scores in own.prior.items() if name not in mixes}
            | {"mix chosen on " + TUNING_SET: own.prior[best]}
            | {name + IN_ORDER: x for name, x in in_order.prior.items() if name not in baselines},
        }

    def measure_words(self) -> dict[str, Any]:
        """How often the nearest use of an ambiguous word has the same label."""
        semcor = list(self.read_semcor())
        tagged = list(
            chain.from_iterable(
                read_tagged(self.data / "ud_ewt" / f"en_ewt-ud-{part}.conllu")
                for part in ("train", "dev", "test")
            )
        )
        return {
            "SemCor senses": self.compare_uses(
                [sentence.tokens for sentence in semcor], collect_word_uses(semcor, WORDS)
            ),
            "EWT parts of speech": self.compare_uses(
                [sentence.tokens for sentence in tagged], collect_tagged_uses(tagged)
            ),
        }

    def compare_uses(
        self, sentences: list[Sequence[str]], uses: dict[str, list[WordUse]]
    ) -> dict[str, Any]:
        """Compare all views of the model and two static baselines for each word."""
        results = {}
        for word, uses_of_word in uses.items():
            if len(uses_of_word) < LEAST_USES or len({use.label for use in uses_of_word}) < 2:
                results[word] = {"num_uses": len(uses_of_word)}
                continue
            views = {
                "GloVe": np.stack([self.glove.embed([word])[0]] * len(uses_of_word)),
                "GloVe of the words around": np.stack(
                    [embed_around(self.glove, sentences[use.sentence], use) for use in uses_of_word]
                ),
                **self.embed_uses(sentences, uses_of_word),
            }
            labels = [use.label for use in uses_of_word]
            numbers = [use.sentence for use in uses_of_word]
            found = {
                name: measure_agreement(vectors, labels, numbers) for name, vectors in views.items()
            }
            results[word] = {
                "num_uses": len(uses_of_word),
                "num_labels": len(set(labels)),
                "chance": found["GloVe"].expected,
                **{name: agreement.agreeing for name, agreement in found.items()},
            }
        return results

    def embed_uses(
        self, sentences: list[Sequence[str]], uses: list[WordUse]
    ) -> dict[str, np.ndarray]:
        """Return the vectors of uses, in each layer and averaged."""
        tokens = [sentences[use.sentence] for use in uses]
        layers = np.stack(
            [
                found[:, use.position]
                for use, found in zip(uses, self.embedder.embed(tokens, layers="all"), strict=True)
            ],
            axis=1,
        )
        views = {f"layer {number}": layer for number, layer in enumerate(layers)}
        return {**views, "average": layers.mean(axis=0)}

    def read_semcor(self) -> Iterator[SenseSentence]:
        """Read the text that senses are learned from."""
        return read_sense_sentences(self.data / "wsd" / "semcor3.0.jsonl.xz")

    def read_test(self, name: str) -> Iterator[SenseSentence]:
        """Read a test set."""
        folder = self.data / "wsd" / "Evaluation_Datasets" / name
        return read_sense_sentences(folder / f"{name}.data.xml")


def list_heldout(text: Path) -> list[str]:
    """Return the names of the held-out texts, those of all editions first."""
    names = sorted(path.stem.removeprefix("heldout_") for path in text.glob("heldout_*.txt"))
    return [*SHARED_TEXTS, *(name for name in names if name not in SHARED_TEXTS)]


def read_documents(path: Path) -> list[Document]:
    """Read documents of tokenized sentences; an empty sentence ends a document."""
    documents: list[Document] = [[]]
    for sentence in read_sentences(path, form=TextForm.RAW):
        if sentence:
            documents[-1].append(sentence)
        elif documents[-1]:
            documents.append([])
    return [document for document in documents if document]


def cut_document(document: Document, *, max_tokens: int) -> Document:
    """Return the sentences of a document up to the one that reaches `max_tokens`."""
    ends = np.cumsum([len(sentence) for sentence in document])
    return document[: int(np.searchsorted(ends, max_tokens)) + 1]


def list_mixes(num_layers: int, *, num_parts: int = 4) -> list[list[float]]:
    """Return all layer weights that are multiples of a quarter and sum to 1."""
    ways = product(range(num_parts + 1), repeat=num_layers)
    return [[part / num_parts for part in way] for way in ways if sum(way) == num_parts]


@dataclass(frozen=True, kw_only=True)
class SenseResults:
    """The results of several views and the baselines."""

    f1: dict[str, dict[str, float]]
    """Plain nearest mean: F1 in percent by view and by test set."""
    prior: dict[str, dict[str, float | None]]
    """By view: the prior chosen on the tuning set, and results with and without it."""


def score_tests(
    training: Iterable[SenseSentence],
    tests: dict[str, list[SenseSentence]],
    *,
    views: nearest_sense.Views,
    first_senses: dict[Any, str],
    find: Callable[[Iterable[SenseSentence]], Iterable[SenseUse]],
) -> SenseResults:
    """Score every view and baseline on every test set, with and without a prior."""
    trained = SenseSums(find(training))
    uses = {test: list(find(sentences)) for test, sentences in tests.items()}
    targets = {test: [use.target for use in found] for test, found in uses.items()}
    plain = {
        test: {
            **nearest_sense.answer_baselines(targets[test], trained, first_senses=first_senses),
            **nearest_sense.answer_views(found, trained, views=views, first_senses=first_senses),
        }
        for test, found in uses.items()
    }
    priors: dict[str, dict[str, float]] = {}
    for name, weights in views.items():
        prior = nearest_sense.choose_prior(
            uses[TUNING_SET], trained, weights=weights, first_senses=first_senses
        )
        answers = {
            test: nearest_sense.answer_views(
                found, trained, views={name: weights}, first_senses=first_senses, prior=prior
            )[name]
            for test, found in uses.items()
        }
        without = {test: found[name] for test, found in plain.items()}
        priors[name] = {"prior": prior, **compare_answers(without, answers)}
    for name in (nearest_sense.MOST_FREQUENT, nearest_sense.FIRST_SENSE):
        same = {test: found[name] for test, found in plain.items()}
        priors[name] = {"prior": math.nan, **compare_answers(same, same)}
    return SenseResults(
        f1={
            name: {
                **{test: _percent(found[name]) for test, found in plain.items()},
                "all": _percent(list(chain.from_iterable(found[name] for found in plain.values()))),
            }
            for name in next(iter(plain.values()))
        },
        prior={
            name: {key: None if math.isnan(x) else x for key, x in numbers.items()}
            for name, numbers in priors.items()
        },
    )


def compare_answers(plain: SenseAnswers, answers: SenseAnswers) -> dict[str, float]:
    """Return F1 and macro-F1 in percent, over all sets and over those that chose nothing."""
    found = {}
    for way, own in (("plain", plain), ("with prior", answers)):
        everything = list(chain.from_iterable(own.values()))
        others = list(chain.from_iterable(a for test, a in own.items() if test != TUNING_SET))
        found[f"{way}, all"] = _percent(everything)
        found[f"{way}, without {TUNING_SET}"] = _percent(others)
        found[f"{way}, macro-F1"] = 100 * nearest_sense.find_macro_f1(everything)
    return found


def _percent(answers: Sequence[nearest_sense.Answer]) -> float:
    return 100 * nearest_sense.score_answers(answers).f1


def collect_tagged_uses(sentences: Sequence[TaggedSentence]) -> dict[str, list[WordUse]]:
    """Find the uses of the words with their parts of speech."""
    uses: dict[str, list[WordUse]] = {word: [] for word in WORDS}
    for number, sentence in enumerate(sentences):
        for position, (token, tag) in enumerate(zip(sentence.tokens, sentence.tags, strict=True)):
            if token.lower() in uses:
                uses[token.lower()].append(WordUse(sentence=number, position=position, label=tag))
    return uses


def embed_around(words: WordVectors, tokens: Sequence[str], use: WordUse) -> np.ndarray:
    """Return the mean static vector of the words around a use."""
    first = max(0, use.position - nearest_sense.CONTEXT_TOKENS)
    around = [
        *tokens[first : use.position],
        *tokens[use.position + 1 : use.position + 1 + nearest_sense.CONTEXT_TOKENS],
    ]
    known = [token for token in around if words.find(token) is not None]
    return words.embed(known).sum(axis=0) / max(len(known), 1)


def main() -> None:
    """Run the requested evaluations and add them to the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "data", "text", "out"):
        parser.add_argument(name, type=str if name == "model" else Path)
    parser.add_argument("parts", nargs="*", help=f"Of {', '.join(PARTS)}; without one, all.")
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet/index.sense"))
    parser.add_argument(
        "--max-tokens", type=int, help="Of each held-out text, spread over its documents."
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(unknown)}; choose of {', '.join(PARTS)}")
    measurement = Measurement(
        model=arguments.model,
        data=arguments.data,
        text=arguments.text,
        wordnet=arguments.wordnet,
        max_tokens=arguments.max_tokens,
    )
    results = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    for part in arguments.parts or PARTS:
        print(f"measuring {part}")
        results[part] = getattr(measurement, f"measure_{part}")()
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
