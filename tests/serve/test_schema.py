"""Whatever the schema allows is answered as the schema says, and nothing fails (schemathesis)."""

from itertools import product

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.serve.processes import serving

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

# Small, so that generated requests reach the limits.
_LIMITS = ("--max-request-tokens", "700", "--max-body-bytes", "50000", "--long-tokens", "40")


@pytest.fixture(scope="module")
def server_schema():
    with serving("--no-access-log", *_LIMITS) as server:
        yield schemathesis.openapi.from_url(f"{server.url}/openapi.json")
        status, log = server.stop()
    assert (status, log) == (0, "")


def test_requests_are_answered_as_the_schema_says(server_schema):
    operations = [found.ok() for found in server_schema.get_all_operations()]
    assert len(operations) >= 20
    assert sum(len(list(operation.body)) for operation in operations) == 11
    for operation, mode in product(operations, schemathesis.GenerationMode):
        has_input = len(list(operation.body)) or len(list(operation.query))
        if mode is schemathesis.GenerationMode.NEGATIVE and not has_input:
            continue  # there is nothing to get wrong

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=25,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def check(case):
            # A schema cannot say how many tokens a text has, so some valid requests are refused.
            case.call_and_validate(excluded_checks=[positive_data_acceptance], timeout=20)

        check()
