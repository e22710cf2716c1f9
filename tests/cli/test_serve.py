"""The options of `elmore serve` become settings; mistakes are one sentence."""

import sys

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")

from elmore.serve.settings import Limits, ServeSettings


@pytest.fixture
def started(monkeypatch):
    """The settings of the servers that would have been started."""
    found = []
    monkeypatch.setattr("elmore.serve.start.serve", found.append)
    return found


def test_without_options_the_defaults_are_those_of_the_settings(elmore_command, started):
    assert elmore_command("serve").status == 0
    assert started == [ServeSettings()]


def test_every_option_reaches_the_settings(elmore_command, started, monkeypatch):
    monkeypatch.setenv("ELMORE_API_KEY", "secret")
    result = elmore_command(
        "serve", "--model", "a=x", "-m", "b=y", "--host", "0.0.0.0", "--port", "9",
        "--workers", "2", "--cors-origin", "https://a.org", "--no-access-log", "--layers", "top",
        "--language", "zh-chars", "--precision", "int8", "--max-sentence-tokens", "10",
        "--max-request-tokens", "11", "--max-body-bytes", "12", "--max-answer-bytes", "13",
        "--max-queue-tokens", "14", "--batch-tokens", "15", "--long-tokens", "16",
        "--grace-seconds", "17",
    )  # fmt: skip
    assert result.status == 0, result.err
    assert started == [
        ServeSettings(
            models=("a=x", "b=y"),
            host="0.0.0.0",
            port=9,
            workers=2,
            api_key="secret",
            cors_origins=("https://a.org",),
            has_access_log=False,
            layers="top",
            language="zh-chars",
            precision="int8",
            max_sentence_tokens=10,
            grace_seconds=17.0,
            limits=Limits(
                max_request_tokens=11,
                max_body_bytes=12,
                max_answer_bytes=13,
                max_queue_tokens=14,
                batch_tokens=15,
                long_tokens=16,
            ),
        )
    ]


def test_a_missing_extra_is_named(elmore_command, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("elmore.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    result = elmore_command("serve")
    assert result.status == 2
    assert result.err == (
        "elmore: elmore serve needs an optional library: pip install 'elmore[serve]'\n"
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--port", "99999"], "port"),
        (["--workers", "0"], "workers"),
        (["--model", "a=x", "--model", "a=y"], "two models are called 'a'"),
    ],
)
def test_mistakes_are_found_before_anything_is_loaded(elmore_command, options, complaint):
    result = elmore_command("serve", *options)
    assert result.status == 2
    assert complaint in result.err
