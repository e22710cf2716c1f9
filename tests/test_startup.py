"""`import elmore` and `elmore --help` stay quick because nothing heavy is imported for them."""

import subprocess
import sys

import pytest

HEAVY = ["torch", "numpy", "h5py", "safetensors", "huggingface_hub", "pyarrow", "nupunkt", "rjieba"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "allowed"),
    [
        ("import elmore", []),
        ("import sys; sys.argv = ['elmore', '--help']\nfrom elmore.cli.app import app\n"
         "app(standalone_mode=False)", []),
        ("import elmore; elmore.read_vectors", ["numpy"]),
    ],
)  # fmt: skip
def test_nothing_heavy_is_imported_before_it_is_needed(program, allowed):
    check = f"\nimport sys; print('loaded', [m for m in {HEAVY} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", program + check], capture_output=True, text=True, check=True
    )
    loaded = result.stdout.strip().splitlines()[-1]
    assert loaded == f"loaded {allowed}"


def test_every_name_of_the_front_door_opens():
    import elmore  # noqa: PLC0415

    for name in elmore.__all__:
        assert getattr(elmore, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        elmore.nothing  # noqa: B018
