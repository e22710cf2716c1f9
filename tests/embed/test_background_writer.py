import threading

import numpy as np
import pytest

from elmore.embed.background_writer import BackgroundWriter, FilePart
from elmore.embed.chunks import ChunkFolder
from elmore.embed.vector_file import SentenceVectors
from elmore.errors import DataError


def part(*names: str) -> FilePart:
    entries = [
        SentenceVectors(tokens=[name], vectors=np.full((1, 2), len(name), np.float32))
        for name in names
    ]
    return FilePart(entries=entries, read=[entry.tokens for entry in entries], state=None)


def open_chunks(tmp_path) -> ChunkFolder:
    return ChunkFolder(tmp_path / "parts", job={"a": 1})


def run_job(chunks, write, *names: str, error: BaseException | None = None) -> None:
    with BackgroundWriter(chunks, write) as writer:
        for name in names:
            writer.add(part(name))
        if error is not None:
            raise error
        writer.finish()


def tokens(entries) -> list[str]:
    return [entry.tokens[0] for entry in entries]


def test_entries_arrive_in_order_and_are_stored(tmp_path):
    found = []
    with open_chunks(tmp_path) as chunks:
        with BackgroundWriter(chunks, lambda entries: found.extend(tokens(entries))) as writer:
            for number in range(20):
                writer.add(part(f"a{number}", f"b{number}"))
            writer.finish()
        assert found == [f"{letter}{number}" for number in range(20) for letter in "ab"]
        assert tokens(chunks) == found


def test_a_part_is_stored_before_it_is_written(tmp_path):
    with open_chunks(tmp_path) as chunks:

        def write(entries):
            for number, _ in enumerate(entries, start=1):
                assert chunks.num_sentences >= number

        with BackgroundWriter(chunks, write) as writer:
            writer.add(part("a", "b"))
            writer.add(part("c"))
            writer.finish()


def test_entries_of_an_earlier_run_come_first(tmp_path):
    found = []
    with open_chunks(tmp_path) as chunks:
        chunks.add(part("old").entries)
        with BackgroundWriter(chunks, lambda entries: found.extend(tokens(entries))) as writer:
            writer.add(part("new"))
            writer.finish()
    assert found == ["old", "new"]


def test_an_error_of_the_job_ends_the_file_but_keeps_the_parts(tmp_path):
    ends = []

    def write(entries):
        try:
            list(entries)
        except BaseException as error:
            ends.append(type(error).__name__)
            raise
        ends.append("complete")

    with open_chunks(tmp_path) as chunks:
        with pytest.raises(KeyboardInterrupt):
            run_job(chunks, write, "a", "b", error=KeyboardInterrupt())
        assert tokens(chunks) == ["a", "b"]
    assert ends == ["_InterruptedError"]
    assert not any("elmore-writer" in thread.name for thread in threading.enumerate())


def test_an_error_of_the_thread_reaches_the_job(tmp_path):
    def write(entries):
        next(entries)
        raise DataError("no space")

    with open_chunks(tmp_path) as chunks, pytest.raises(DataError, match="no space"):
        run_job(chunks, write, *map(str, range(1000)))


def test_an_error_at_the_end_reaches_the_job(tmp_path):
    def write(entries):
        list(entries)
        raise DataError("cannot rename")

    with open_chunks(tmp_path) as chunks, pytest.raises(DataError, match="cannot rename"):
        run_job(chunks, write, "a")
