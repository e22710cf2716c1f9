"""Programs written for other servers work with this one."""

import base64
import json
import shutil
import subprocess

import numpy as np
import pytest

from elmore.serve.encoding import normalize
from tests.serve.processes import serving
from tests.serve.services import load_tiny

pytestmark = pytest.mark.slow
TEXTS = ["The bank of the river.", "Deep learning"]


@pytest.fixture(scope="module")
def server():
    with serving("--no-access-log", ELMORE_API_KEY="secret") as running:
        yield running


@pytest.fixture
def client(server):
    openai = pytest.importorskip("openai", reason="the openai client is not installed")
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="secret", max_retries=0) as made:
        yield made


@pytest.mark.parametrize("encoding_format", [None, "float", "base64"])
def test_the_openai_client_gets_the_vectors(client, encoding_format):
    options = {} if encoding_format is None else {"encoding_format": encoding_format}
    answer = client.embeddings.create(model="tiny", input=TEXTS, **options)
    expected = normalize(load_tiny().sentence_vectors(TEXTS))
    for item, vector in zip(answer.data, expected, strict=True):
        found = item.embedding
        if isinstance(found, str):  # asked for by name, it is left to the caller
            found = np.frombuffer(base64.b64decode(found), "<f4")
        assert np.array(found, dtype=np.float32).tobytes() == vector.tobytes()
    assert answer.usage.prompt_tokens == sum(map(len, load_tiny().tokenize(TEXTS)))
    assert answer.model == "tiny"


def test_the_openai_client_sends_one_text(client):
    (item,) = client.embeddings.create(model="tiny", input=TEXTS[0]).data
    assert len(item.embedding) == 48


def test_the_openai_client_lists_models(client):
    assert [model.id for model in client.models.list()] == ["tiny"]


def test_the_openai_client_understands_refusals(client, server):
    openai = pytest.importorskip("openai")
    with pytest.raises(openai.NotFoundError, match="this server has: tiny"):
        client.embeddings.create(model="ada", input="a")
    with pytest.raises(openai.UnprocessableEntityError, match="leave dimensions out"):
        client.embeddings.create(model="tiny", input="a", dimensions=3)
    with pytest.raises(openai.UnprocessableEntityError, match="tokens are words"):
        client.embeddings.create(model="tiny", input=[1, 2])
    stranger = openai.OpenAI(base_url=f"{server.url}/v1", api_key="guess", max_retries=0)
    with stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()


def curl(server, path, body):
    """Send what the documentation of text-embeddings-inference sends."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    command = ["curl", "--silent", f"127.0.0.1:{server.port}{path}", "-X", "POST", "-d", body]
    headers = ["-H", "Content-Type: application/json", "-H", "Authorization: Bearer secret"]
    done = subprocess.run([*command, *headers], capture_output=True, check=True, timeout=30)
    return json.loads(done.stdout)


def test_the_documented_calls_of_text_embeddings_inference(server):
    one = curl(server, "/embed", '{"inputs":"What is Deep Learning?"}')
    assert np.array(one).shape == (1, 48)
    several = curl(server, "/embed", '{"inputs":["Today is a nice day", "I like you"]}')
    assert np.array(several).shape == (2, 48)
    tokens = curl(server, "/embed_all", '{"inputs":"What is Deep Learning?"}')
    assert np.array(tokens).shape == (1, 5, 48)
    truncated = curl(server, "/embed", '{"inputs":"What is this?","truncate":true}')
    assert np.array(truncated).shape == (1, 48)
    body = '{"model":"tiny","input":"What is Deep Learning?"}'
    assert curl(server, "/v1/embeddings", body)["object"] == "list"
