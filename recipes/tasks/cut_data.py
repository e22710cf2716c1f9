"""Put task data into folders that `elmore compare --data` reads.

    python recipes/tasks/cut_data.py data parts

SNLI files are named after their parts; OntoGUM is split as its authors do; SQuAD, whose test is
not public, is tested on questions of its development set, from all articles, and every 20th article
of training chooses weights.
"""

import gzip
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

DEV_ARTICLE = 20
MAX_DEV_QUESTIONS = 1000
MAX_TEST_QUESTIONS = 2000


def read_splits(text: str) -> dict[str, list[str]]:
    """Read OntoGUM's splits.md: one title per part, one item per document."""
    splits: dict[str, list[str]] = {}
    for line in text.splitlines():
        if title := re.fullmatch(r"## (\w+)", line.strip()):
            splits[title[1]] = documents = []
        elif item := re.fullmatch(r"\* (\w\S*)", line.strip()):
            documents.append(item[1])
    return splits


def cut_ontogum(source: Path, out: Path) -> dict[str, int]:
    """Copy each document to the folder of its part; return the number in each."""
    splits = read_splits((source / "splits.md").read_text(encoding="utf-8"))
    for part in ("train", "dev", "test"):
        (out / part).mkdir(parents=True, exist_ok=True)
        for name in splits[part]:
            shutil.copy(source / "ontogum_conllu" / f"{name}.conllu", out / part)
    return {part: len(splits[part]) for part in ("train", "dev", "test")}


def hold_out(articles: list[Any]) -> tuple[list[Any], list[Any]]:
    """Split articles into training and dev data."""
    train = [article for number, article in enumerate(articles) if number % DEV_ARTICLE]
    return train, cut_questions(articles[::DEV_ARTICLE], MAX_DEV_QUESTIONS)


def cut_questions(articles: list[Any], most: int) -> list[Any]:
    """Return the first passages of each article, up to a number of questions in all."""
    chosen: list[list[Any]] = [[] for _ in articles]
    deepest = max(len(article["paragraphs"]) for article in articles)
    num_questions = 0
    for index in range(deepest):
        for article, passages in zip(articles, chosen, strict=True):
            if index < len(article["paragraphs"]) and num_questions < most:
                passages.append(article["paragraphs"][index])
                num_questions += len(article["paragraphs"][index]["qas"])
    pairs = zip(articles, chosen, strict=True)
    return [{**article, "paragraphs": passages} for article, passages in pairs if passages]


def cut_squad(source: Path, out: Path) -> dict[str, int]:
    """Write three files; return the number of questions in each."""
    train, dev = hold_out(_read_articles(source / "train-v1.1-rebuilt.json.gz"))
    test = cut_questions(_read_articles(source / "dev-v1.1-rebuilt.json.gz"), MAX_TEST_QUESTIONS)
    out.mkdir(parents=True, exist_ok=True)
    parts = {"train": train, "dev": dev, "test": test}
    for part, articles in parts.items():
        text = json.dumps({"version": "1.1", "data": articles}, ensure_ascii=False)
        (out / f"{part}.json").write_text(text, encoding="utf-8")
    return {
        part: sum(len(passage["qas"]) for article in articles for passage in article["paragraphs"])
        for part, articles in parts.items()
    }


def _read_articles(path: Path) -> list[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        articles: list[Any] = json.load(file)["data"]
    return articles


def name_snli(source: Path, out: Path) -> None:
    """Copy the tables to files named after their parts."""
    out.mkdir(parents=True, exist_ok=True)
    for name, part in (("train_18k", "train"), ("dev", "dev"), ("test", "test")):
        shutil.copy(source / f"{name}.tsv", out / f"{part}.tsv")


def main() -> None:
    """Cut everything."""
    data, out = map(Path, sys.argv[1:])
    name_snli(data / "snli", out / "snli")
    print("coreference, documents:", cut_ontogum(data / "coref_gum", out / "ontogum"))
    print("questions:", cut_squad(data / "squad", out / "squad"))


if __name__ == "__main__":
    main()
