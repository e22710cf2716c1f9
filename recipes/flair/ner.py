"""Train Flair's entity tagger on a cut of CoNLL-2003, without elmore and with it, and test both.

    python recipes/flair/ner.py CONLL2003 OUT [--sentences 1500] [--epochs 8]

CONLL2003 is a folder with eng.train, eng.testa and eng.testb. The first sentences of eng.train are
for training, those of eng.testa, a quarter as many, for choosing the epoch; eng.testb is used
whole. Both taggers read one-hot words and characters; one of them reads elmore's vectors too.
"""

import argparse
from itertools import islice
from pathlib import Path

import flair
from flair.data import Corpus, Dictionary
from flair.datasets import ColumnCorpus
from flair.embeddings import CharacterEmbeddings, OneHotEmbeddings, StackedEmbeddings
from flair.models import SequenceTagger
from flair.trainers import ModelTrainer

from elmore.integrations.flair import ElmoreEmbeddings


def cut_file(source: Path, target: Path, *, num_sentences: int | None) -> None:
    """Copy the first sentences of a file, without the lines that separate documents."""
    blocks = source.read_text(encoding="utf-8").split("\n\n")
    kept = (block.strip() for block in blocks if not block.strip().startswith("-DOCSTART-"))
    sentences = islice((block for block in kept if block), num_sentences)
    target.write_text("\n\n".join(sentences) + "\n", encoding="utf-8")


def read_corpus(data: Path, out: Path, *, num_sentences: int) -> Corpus:
    """Cut the files and read them."""
    out.mkdir(parents=True, exist_ok=True)
    sizes = {"train": num_sentences, "testa": num_sentences // 4, "testb": None}
    for part, size in sizes.items():
        cut_file(data / f"eng.{part}", out / f"{part}.txt", num_sentences=size)
    return ColumnCorpus(
        str(out), {0: "text", 3: "ner"}, train_file="train.txt", dev_file="testa.txt",
        test_file="testb.txt",
    )  # fmt: skip


def collect_characters(corpus: Corpus) -> Dictionary:
    """Return the characters of the training text; without them, Flair downloads a list."""
    characters = Dictionary()
    for sentence in corpus.train:
        for character in sentence.text:
            characters.add_item(character)
    return characters


def train_tagger(corpus: Corpus, out: Path, *, with_elmore: bool, epochs: int) -> float:
    """Return the test F1 in percent."""
    flair.set_seed(0)
    embeddings = [
        OneHotEmbeddings.from_corpus(corpus),
        CharacterEmbeddings(collect_characters(corpus)),
    ]
    if with_elmore:
        embeddings.append(ElmoreEmbeddings(embedding_mode="average"))
    tagger = SequenceTagger(
        embeddings=StackedEmbeddings(embeddings),
        tag_dictionary=corpus.make_label_dictionary("ner", add_unk=False),
        tag_type="ner",
        hidden_size=128,
    )
    result = ModelTrainer(tagger, corpus).train(
        out, learning_rate=0.1, mini_batch_size=16, max_epochs=epochs
    )
    return 100 * result["test_score"]


def main() -> None:
    """Print a table of test scores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("conll2003", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sentences", type=int, default=1500)
    parser.add_argument("--epochs", type=int, default=8)
    arguments = parser.parse_args()
    corpus = read_corpus(
        arguments.conll2003, arguments.out / "data", num_sentences=arguments.sentences
    )
    scores = {
        how: train_tagger(
            corpus, arguments.out / how, with_elmore=how == "with", epochs=arguments.epochs
        )
        for how in ("without", "with")
    }
    print("| | test F1 |\n|---|---:|")
    for how, score in scores.items():
        print(f"| {how} elmore | {score:.1f} |")


if __name__ == "__main__":
    main()
