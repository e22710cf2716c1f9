"""Make the checkpoints of the tests with TensorFlow: a tiny biLM with bilm-tf's variables.

    python scripts/make_tf_checkpoint.py     # needs tensorflow 2.15 and h5py

TensorFlow names the variables of its LSTMs, takes two steps of Adagrad, writes the checkpoint, and
computes the log-probabilities in expected.json. `partitioned/` holds the same weights with some
variables cut into slices, in two data files.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import tensorflow.compat.v1 as tf

TWO_DEVICES = tf.ConfigProto(device_count={"CPU": 2})
ROOT = Path(__file__).parents[1]
HERE = ROOT / "tests" / "weights" / "tf_checkpoint" / "fixture"
WORDS = ["<S>", "</S>", "<UNK>", "the", "bank", "of", "river", "was", "closed", ".", "café", "我"]
SENTENCE = ["the", "café", "of", "the", "naïve", "river", "was", "closed", "."]
OPTIONS: dict[str, Any] = {
    "bidirectional": True,
    "all_clip_norm_val": 10.0,
    "batch_size": 1,
    "dropout": 0.1,
    "n_epochs": 1,
    "n_negative_samples_batch": 4,
    "n_tokens_vocab": len(WORDS),
    "n_train_tokens": 100,
    "unroll_steps": 10,
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 4},
        "filters": [[1, 4], [2, 4], [3, 8]],
        "max_characters_per_token": 12,
        "n_characters": 261,
        "n_highway": 2,
    },
    "lstm": {
        "cell_clip": 3,
        "dim": 16,
        "n_layers": 2,
        "proj_clip": 3,
        "projection_dim": 8,
        "use_skip_connections": True,
    },
}


def spell(word: str) -> list[int]:
    """Return the byte ids of a word, as bilm-tf numbers them in training."""
    width = OPTIONS["char_cnn"]["max_characters_per_token"]
    marks = {"<S>": [256], "</S>": [257]}
    ids = [258, *marks.get(word, list(word.encode()))[: width - 2], 259]
    return ids + [260] * (width - len(ids))


def variable(name: str, shape: list[int], *, scale: float = 0.5) -> Any:
    """Make a variable with random numbers."""
    return tf.get_variable(name, shape, initializer=tf.random_normal_initializer(0.0, scale))


def embed(ids: Any) -> Any:
    """Return the token vectors (T, D) of (T, C) byte ids."""
    cnn = OPTIONS["char_cnn"]
    dim = cnn["embedding"]["dim"]
    table = variable("char_embed", [cnn["n_characters"], dim])
    characters = tf.nn.embedding_lookup(table, ids)[None]
    parts = []
    with tf.variable_scope("CNN"):
        for index, (width, number) in enumerate(cnn["filters"]):
            kernel = variable(f"W_cnn_{index}", [1, width, dim, number])
            bias = variable(f"b_cnn_{index}", [number])
            conv = tf.nn.conv2d(characters, kernel, strides=[1, 1, 1, 1], padding="VALID")
            parts.append(tf.nn.relu(tf.reduce_max(conv + bias, axis=2))[0])
    vectors = tf.concat(parts, axis=1)
    total = sum(number for _, number in cnn["filters"])
    for depth in range(cnn["n_highway"]):
        with tf.variable_scope(f"CNN_high_{depth}"):
            gate = tf.sigmoid(
                vectors @ variable("W_carry", [total, total]) + variable("b_carry", [total])
            )
            new = tf.nn.relu(
                vectors @ variable("W_transform", [total, total]) + variable("b_transform", [total])
            )
        vectors = gate * new + (1 - gate) * vectors
    with tf.variable_scope("CNN_proj"):
        output_dim = OPTIONS["lstm"]["projection_dim"]
        return vectors @ variable("W_proj", [total, output_dim]) + variable("b_proj", [output_dim])


def run_lstm(vectors: Any, direction: int) -> Any:
    """Return the outputs (T, D) of one direction, by TensorFlow's own LSTM."""
    lstm = OPTIONS["lstm"]
    cells = []
    for layer in range(lstm["n_layers"]):
        cell = tf.nn.rnn_cell.LSTMCell(
            lstm["dim"],
            num_proj=lstm["projection_dim"],
            cell_clip=lstm["cell_clip"],
            proj_clip=lstm["proj_clip"],
        )
        cells.append(tf.nn.rnn_cell.ResidualWrapper(cell) if layer else cell)
    with tf.variable_scope(f"RNN_{direction}"):
        steps = [vectors[None, step] for step in range(len(SENTENCE) + 1)]
        outputs, _ = tf.nn.static_rnn(tf.nn.rnn_cell.MultiRNNCell(cells), steps, dtype=tf.float32)
    return tf.concat(outputs, axis=0)


def build(partitioner: Any = None) -> Any:
    """Return the log-probability of each target: (2, T)."""
    symbols = ["<S>", *SENTENCE, "</S>"]
    known = {word: index for index, word in enumerate(WORDS)}
    targets = [known.get(word, known["<UNK>"]) for word in symbols]
    with tf.variable_scope("lm"):
        vectors = embed(tf.constant([spell(word) for word in symbols]))
        outputs = [run_lstm(vectors[:-1], 0), run_lstm(vectors[:0:-1], 1)]
        # On another device, so that the partitioned checkpoint gets a second data file.
        with tf.variable_scope("softmax", partitioner=partitioner), tf.device("/cpu:1"):
            dim = OPTIONS["lstm"]["projection_dim"]
            weight = tf.convert_to_tensor(variable("W", [len(WORDS), dim]))
            bias = tf.convert_to_tensor(variable("b", [len(WORDS)]))
    found = []
    for output, wanted in zip(outputs, (targets[1:], targets[-2::-1]), strict=True):
        logits = tf.nn.log_softmax(output @ tf.transpose(weight) + bias)
        found.append(tf.gather(logits, wanted, batch_dims=1))
    return tf.stack(found)


def name_in_hdf5(name: str) -> str:
    """Return bilm-tf's name of a variable in the HDF5 file."""
    name = name.removeprefix("lm/")
    for old, new in (
        ("/rnn/multi_rnn_cell/cell_", "/RNN/MultiRNNCell/Cell"),
        ("/lstm_cell/projection/kernel", "/LSTMCell/W_P_0"),
        ("/lstm_cell/kernel", "/LSTMCell/W_0"),
        ("/lstm_cell/bias", "/LSTMCell/B"),
    ):
        name = name.replace(old, new)
    return name


def make_checkpoint(folder: Path) -> dict[str, np.ndarray]:
    """Train for two steps and save; return the weights."""
    with tf.Graph().as_default(), tf.Session(config=TWO_DEVICES) as session:
        tf.set_random_seed(1)
        step = tf.get_variable("global_step", [], initializer=tf.zeros_initializer())
        log_probs = build()
        optimizer = tf.train.AdagradOptimizer(0.2, initial_accumulator_value=1.0)
        train = optimizer.minimize(-tf.reduce_mean(log_probs), global_step=step)
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run(train)
        tf.train.Saver().save(session, str(folder / "model.ckpt"), global_step=2)
        trained = {one.op.name: one for one in tf.trainable_variables() if one is not step}
        weights = session.run(trained)
        expected = {"sentence": SENTENCE, "log_probs": session.run(log_probs).tolist()}
    (folder / "options.json").write_text(json.dumps(OPTIONS))
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    (folder / "expected.json").write_text(json.dumps(expected))
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, weight in weights.items():
            if "softmax" not in name:
                file.create_dataset(name_in_hdf5(name), data=weight)
    return weights


def make_partitioned(folder: Path, weights: dict[str, np.ndarray]) -> None:
    """Save the same weights again, the softmax in three slices along its first axis."""
    with tf.Graph().as_default(), tf.Session(config=TWO_DEVICES) as session:
        build(tf.fixed_size_partitioner(3, axis=0))
        for one in tf.trainable_variables():
            name, _, part = one.op.name.partition("/part_")
            whole = weights[name]
            value = np.array_split(whole, 3)[int(part)] if part else whole
            one.load(value, session)
        tf.train.Saver(sharded=True).save(session, str(folder / "model.ckpt"), global_step=2)


if __name__ == "__main__":
    shutil.rmtree(HERE, ignore_errors=True)
    for name in ("whole", "partitioned"):
        (HERE / name).mkdir(parents=True)
    made = make_checkpoint(HERE / "whole")
    make_partitioned(HERE / "partitioned", made)
    for graph in HERE.rglob("*.meta"):
        graph.unlink()
    for state in HERE.rglob("checkpoint"):  # as if copied from the machine of its authors
        state.write_text('model_checkpoint_path: "/home/someone/model.ckpt-2"\n')
