import zlib

import numpy as np
import pytest

from elmore.errors import DataError
from elmore.files.growing_file import EMPTY, FileFacts, GrowingFile, compute_crc32


def grow(path, facts=EMPTY):
    return GrowingFile(path, facts, make_error=DataError)


def test_what_was_committed_stays_and_the_rest_is_cut_off(tmp_path):
    path = tmp_path / "file"
    file = grow(path)
    file.append(b"one ")
    file.append(np.arange(3, dtype="<u2"))
    facts = file.commit()
    assert facts == FileFacts(num_bytes=10, crc32=zlib.crc32(b"one \0\0\1\0\2\0"))
    file.append(b"lost")
    file.close()
    assert path.stat().st_size == 14
    again = grow(path, facts)
    again.append(b"!")
    after = again.commit()
    again.close()
    assert path.read_bytes() == b"one \0\0\1\0\2\0!"
    assert after.crc32 == zlib.crc32(path.read_bytes())


def test_a_file_that_lost_bytes_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"ab")
    with pytest.raises(DataError, match="has 2 bytes instead of 3"):
        grow(path, FileFacts(num_bytes=3, crc32=0))
    with pytest.raises(DataError, match="is missing"):
        grow(tmp_path / "other", FileFacts(num_bytes=3, crc32=0))


def test_damage_is_found_by_reading(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abcd")
    facts = FileFacts(num_bytes=3, crc32=zlib.crc32(b"abc"))
    assert facts.find_damage(path, reads=True) is None  # it has grown since
    assert compute_crc32(path, num_bytes=3) == facts.crc32
    path.write_bytes(b"aXcd")
    assert facts.find_damage(path, reads=False) is None
    assert "its checksum differs" in facts.find_damage(path, reads=True)
