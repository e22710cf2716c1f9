"""ArrowEmbedder inside Spark, datasets and Dask gives the embedder's bits.

Run by `make test-cluster`, in a network namespace with loopback only.
"""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

import elmore
from tests.cluster.clusters import in_namespace, needs_namespaces
from tests.tiny import TRAINED_MODEL

pytestmark = pytest.mark.slow
TEXTS = [f"The bank number {number} is by the river." for number in range(50)]
HEAD = f"""
import numpy as np, elmore
model = {str(TRAINED_MODEL)!r}
texts = [f"The bank number {{number}} is by the river." for number in range(50)]
wanted = elmore.load(model).sentence_vectors(texts)
"""
SPARK = """
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
         .getOrCreate())
frame = spark.createDataFrame([(number, text) for number, text in enumerate(texts)], ["id", "text"])
schema = "id bigint, text string, vector array<float>"
embed = elmore.ArrowEmbedder(model, pool="mean", threads=1, fixed_size=False)
for mapped in (frame.mapInArrow(embed.map, schema), frame.mapInPandas(embed.map, schema)):
    rows = sorted(mapped.collect(), key=lambda row: row["id"])
    found = np.array([row["vector"] for row in rows], np.float32)
    assert found.tobytes() == wanted.tobytes()
spark.stop()
print("same")
"""
DASK = """
import dask, dask.dataframe as dd, pandas
dask.config.set({"dataframe.convert-string": False})
frame = dd.from_pandas(pandas.DataFrame({"text": texts}), npartitions=3)
embed = elmore.ArrowEmbedder(model, pool="mean", threads=1)
meta = {"text": object, "vector": object}
found = frame.map_partitions(embed, meta=meta).compute(scheduler="processes", num_workers=2)
assert np.stack(found["vector"]).tobytes() == wanted.tobytes()
print("same")
"""


def run(program):
    # Worker processes of Dask import the program, so it needs a main guard.
    body = "".join(f"    {line}\n" for line in (HEAD + program).splitlines())
    text = f'if __name__ == "__main__":\n{body}'
    done = subprocess.run(
        in_namespace(sys.executable, "-c", text),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    assert "same" in done.stdout, done.stderr


@needs_namespaces
@pytest.mark.skipif(find_spec("pyspark") is None, reason="needs pyspark, and Java")
def test_spark_maps_batches_of_arrow_and_pandas():
    run(SPARK)


@needs_namespaces
@pytest.mark.skipif(find_spec("dask") is None, reason="needs dask[dataframe]")
def test_dask_maps_partitions():
    run(DASK)


@pytest.mark.skipif(find_spec("datasets") is None, reason="needs elmore[datasets]")
class TestDatasets:
    @pytest.fixture
    def dataset(self, tmp_path, monkeypatch):
        import datasets  # noqa: PLC0415  not in every environment

        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
        datasets.Dataset.from_dict({"text": TEXTS}).save_to_disk(tmp_path / "saved")
        return datasets.load_from_disk(tmp_path / "saved")

    @pytest.mark.parametrize("num_proc", [None, 2])
    def test_map_gives_the_embedders_bits(self, dataset, num_proc):
        embedder = elmore.load(TRAINED_MODEL)
        wanted = embedder.sentence_vectors(TEXTS)  # also uses threads before the fork
        mapped = dataset.map(
            embedder.to_features(column="text"), batched=True, batch_size=7, num_proc=num_proc
        )
        found = mapped.with_format("numpy")["vector"][:]
        assert np.asarray(found, np.float32).tobytes() == wanted.tobytes()
        assert mapped.features["vector"].feature.dtype == "float32"

    def test_one_row_at_a_time_and_token_vectors(self, dataset):
        embedder = elmore.load(TRAINED_MODEL)
        mapped = dataset.select(range(5)).map(embedder.to_features(pool=None))
        wanted = embedder.embed(TEXTS[:5])
        assert mapped["tokens"][:] == embedder.tokenize(TEXTS[:5])
        for vectors, other in zip(mapped["vector"], wanted, strict=True):
            assert np.array(vectors, np.float32).tobytes() == other.tobytes()

    def test_results_are_cached_by_model_and_settings(self, dataset, monkeypatch):
        def count_calls(**how):
            calls = []
            plain = elmore.ArrowEmbedder._embed_dict
            monkeypatch.setattr(
                elmore.ArrowEmbedder,
                "_embed_dict",
                lambda self, batch: calls.append(1) or plain(self, batch),
            )
            # A new object, as in the next run of a program.
            dataset.map(elmore.load(TRAINED_MODEL).to_features("text", **how), batched=True)
            monkeypatch.undo()
            return len(calls)

        assert count_calls(pool="mean") > 0
        assert count_calls(pool="mean") == 0
        assert count_calls(pool="max") > 0
