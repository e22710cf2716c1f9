"""Classify film reviews with ELMo vectors in Keras: fit, save, load, predict.

KERAS_BACKEND=torch python examples/keras_sentiment.py aclImdb sentiment.keras [MODEL]

The folder has the layout of the IMDb reviews: train and test, each with neg/*.txt and pos/*.txt.
Without MODEL, the English model in the package is used.
"""

import sys
from pathlib import Path

import keras
import numpy as np
from keras import layers

from elmore.compat.keras import ElmoEmbeddingLayer, encode_strings

NUM_WORDS = 150
NUM_EPOCHS = 5


def read_reviews(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the first words of each review, as integers, and whether it is positive."""
    paths = [*sorted(folder.glob("neg/*.txt")), *sorted(folder.glob("pos/*.txt"))]
    texts = [" ".join(path.read_text(encoding="utf-8").split()[:NUM_WORDS]) for path in paths]
    return encode_strings(texts), np.array([path.parent.name == "pos" for path in paths])


def build_classifier(model: str | None) -> keras.Model:
    """Put two dense layers on the mean of the ELMo vectors."""
    text = layers.Input(shape=(None,), dtype="int32")
    embedding = ElmoEmbeddingLayer(model)(text)
    dense = layers.Dense(256, activation="relu")(embedding)
    prediction = layers.Dense(1, activation="sigmoid")(dense)
    classifier = keras.Model(inputs=text, outputs=prediction)
    classifier.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
    return classifier


def main(reviews: str, saved: str, model: str | None = None) -> None:
    """Train and save a classifier, and check that the saved one predicts the same."""
    keras.utils.set_random_seed(0)
    train_texts, train_labels = read_reviews(Path(reviews) / "train")
    test_texts, test_labels = read_reviews(Path(reviews) / "test")
    classifier = build_classifier(model)
    classifier.summary()
    classifier.fit(train_texts, train_labels, epochs=NUM_EPOCHS, batch_size=32, verbose=2)
    before = classifier.predict(test_texts, verbose=0)

    classifier.save(saved)
    after = keras.models.load_model(saved).predict(test_texts, verbose=0)
    accuracy = ((after[:, 0] > 0.5) == test_labels).mean()
    print(f"accuracy {accuracy:.3f} on {len(test_labels)} reviews")
    print(f"the loaded model predicts the same: {np.array_equal(before, after)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
