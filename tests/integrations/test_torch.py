"""Elmo in training loops: compiled, in mixed precision, saved and loaded, fed by a DataLoader."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import distributed, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

import elmore
from elmore.integrations.torch import SentenceCollate
from tests import tiny

SENTENCES = [["A", "bank", "."], ["The", "river"], ["rates"]]
TAGS = [[0, 1, 2], [0, 1], [1]]


class Tagger(nn.Module):
    def __init__(self, **settings):
        super().__init__()
        self.elmo = elmore.Elmo(tiny.model(), dropout=0.0, **settings)
        self.output = nn.Linear(self.elmo.output_dim, 3)

    def forward(self, sentences):
        return self.output(self.elmo(sentences).representations[0])


def make_tagger(**settings):
    torch.manual_seed(0)
    return Tagger(**settings)


def step(network, inputs):
    """Return the loss and every gradient of a training step."""
    scores = network(inputs).float()
    labels = nn.utils.rnn.pad_sequence(
        [torch.tensor(tags) for tags in TAGS], batch_first=True, padding_value=-100
    )
    loss = cross_entropy(scores.flatten(0, 1), labels.flatten())
    loss.backward()
    return loss.detach(), {
        name: weight.grad for name, weight in network.named_parameters() if weight.requires_grad
    }


# The compiler itself warns.
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["native", "torch"])
@pytest.mark.parametrize("trains_bilm", [False, True])
def test_a_compiled_network_trains_like_the_original(monkeypatch, kernel, trains_bilm):
    if kernel == "torch":
        monkeypatch.setenv("ELMORE_KERNEL", "torch")
    original, compiled = make_tagger(trains_bilm=trains_bilm), make_tagger(trains_bilm=trains_bilm)
    torch.compiler.reset()
    loss, gradients = step(original, SENTENCES)
    # aot_eager: all of the compiler but the code generator, which needs minutes.
    found, found_gradients = step(torch.compile(compiled, backend="aot_eager"), SENTENCES)
    torch.testing.assert_close(found, loss)
    assert all(name.removeprefix("_orig_mod.") in gradients for name in found_gradients)
    for name, gradient in found_gradients.items():
        torch.testing.assert_close(gradient, gradients[name.removeprefix("_orig_mod.")])


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.slow
def test_only_the_bilm_is_left_out_of_the_compiled_graph():
    torch.compiler.reset()
    explained = torch._dynamo.explain(make_tagger())(SENTENCES)
    assert explained.graph_count <= 3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("trains_bilm", [False, True])
def test_mixed_precision(dtype, trains_bilm):
    loss, gradients = step(make_tagger(trains_bilm=trains_bilm), SENTENCES)
    network = make_tagger(trains_bilm=trains_bilm)
    with torch.autocast("cpu", dtype=dtype):
        assert network(SENTENCES).dtype == dtype
        found, found_gradients = step(network, SENTENCES)
    torch.testing.assert_close(found, loss, rtol=0.05, atol=0.05)
    assert found_gradients.keys() == gradients.keys()
    for name, gradient in found_gradients.items():
        assert gradient.dtype == torch.float32, name
        assert torch.isfinite(gradient).all(), name


@pytest.mark.parametrize("trains_bilm", [False, True])
def test_a_state_dict_restores_every_bit(tmp_path, trains_bilm):
    network = make_tagger(trains_bilm=trains_bilm)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1)
    step(network, SENTENCES)
    optimizer.step()
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    other = Tagger(trains_bilm=trains_bilm)
    with torch.no_grad():
        other.elmo.bilm.initial_cell.add_(1)
    other(SENTENCES)  # fills its cache with vectors of the old weights
    other.load_state_dict(torch.load(tmp_path / "weights.pt"))
    assert torch.equal(other.eval()(SENTENCES), network.eval()(SENTENCES))


def test_collated_sentences_are_a_batch_with_padded_labels():
    network = make_tagger()
    collate = SentenceCollate(network.elmo)
    examples = list(zip(SENTENCES, TAGS, [0.5, 1.5, 2.5], strict=True))
    batch, tags, scores = collate(examples)
    torch.testing.assert_close(network(batch), network(SENTENCES))
    assert tags.tolist() == [[0, 1, 2], [0, 1, -100], [1, -100, -100]]
    assert scores.tolist() == [0.5, 1.5, 2.5]
    torch.testing.assert_close(network(collate(SENTENCES)), network(SENTENCES))


def test_a_collate_function_is_pickled_without_the_network():
    collate = SentenceCollate(make_tagger().elmo)
    data = pickle.dumps(collate)
    assert len(data) < 2000
    assert pickle.loads(data)(SENTENCES).lengths.tolist() == [5, 4, 3]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # about forking with threads
@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_loader_feeds_a_training_loop(num_workers):
    network = make_tagger()
    loader = DataLoader(
        list(zip(SENTENCES, TAGS, strict=True)) * 4,
        batch_size=3,
        collate_fn=SentenceCollate(network.elmo),
        num_workers=num_workers,
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
    losses = []
    for _ in range(20):
        for batch, tags in loader:
            loss = cross_entropy(network(batch).flatten(0, 1), tags.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


def test_what_cannot_spell_is_refused():
    for given in (tiny.model(), elmore.Elmo(tiny.model().bilm)):
        with pytest.raises(elmore.ElmoreError, match="cannot spell tokens"):
            SentenceCollate(given)


def replicate(module):
    """Return a replica as `DataParallel` makes them: weights are plain tensors, without a list."""
    replicas = {each: each._replicate_for_data_parallel() for each in module.modules()}
    for each, replica in replicas.items():
        for name, child in each._modules.items():
            setattr(replica, name, replicas.get(child))
            replica._modules[name] = replicas.get(child)
        for name, weight in [*each._parameters.items(), *each._buffers.items()]:
            # A copy on another device is no Parameter either.
            setattr(replica, name, None if weight is None else weight.view_as(weight))
    assert list(replicas[module].parameters()) == []
    return replicas[module]


@pytest.mark.parametrize("trains_bilm", [False, True])
def test_replicas_of_data_parallel_give_the_same_vectors_and_gradients(monkeypatch, trains_bilm):
    """On the CPU, DataParallel makes no replicas; this does what it does on several GPUs."""
    monkeypatch.setenv("ELMORE_KERNEL", "torch")  # as on a GPU
    network = make_tagger(trains_bilm=trains_bilm)
    alphabet = network.elmo.speller.alphabet
    ids = torch.zeros(len(SENTENCES), 3, alphabet.max_chars, dtype=torch.int64)
    for row, tokens in zip(ids, SENTENCES, strict=True):
        row[: len(tokens)] = torch.from_numpy(alphabet.spell_all(tokens)) + 1
    expected = network(ids)
    expected.square().sum().backward()
    gradients = {
        name: weight.grad.clone()
        for name, weight in network.named_parameters()
        if weight.grad is not None
    }
    network.zero_grad()
    parts = list(ids.split([2, 1]))  # each as wide as the whole, so that outputs can be joined
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(nn.Module.__call__, [replicate(network) for _ in parts], parts))
    torch.testing.assert_close(torch.cat(outputs), expected)
    torch.cat(outputs).square().sum().backward()
    for name, gradient in gradients.items():
        torch.testing.assert_close(dict(network.named_parameters())[name].grad, gradient)
    assert torch.equal(nn.DataParallel(network)(ids), expected)


@pytest.fixture
def one_process(tmp_path, monkeypatch):
    """Join a group of processes that has no other members."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1
    )
    yield
    distributed.destroy_process_group()


@pytest.mark.parametrize("trains_bilm", [False, True])
@pytest.mark.parametrize("as_batch", [False, True])
def test_distributed_data_parallel_trains_the_same(one_process, trains_bilm, as_batch):
    network = make_tagger(trains_bilm=trains_bilm)
    inputs = SentenceCollate(network.elmo)(SENTENCES) if as_batch else SENTENCES
    expected_loss, expected = step(network, inputs)
    expected = {name: gradient.clone() for name, gradient in expected.items()}
    network.zero_grad()
    loss, gradients = step(nn.parallel.DistributedDataParallel(network), inputs)
    torch.testing.assert_close(loss, expected_loss)
    assert {name.removeprefix("module.") for name in gradients} == expected.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[name.removeprefix("module.")])
