from pathlib import Path

import numpy as np
import torch

from elmore.compat.allennlp.modules.elmo import Elmo, batch_to_ids
from tests.compat.old_models import OldModel
from tests.weights.peer_files import read_all_arrays


class Network(torch.nn.Module):
    def __init__(self, old):
        super().__init__()
        self.elmo = Elmo(old.options, old.weights, 1, dropout=0.0)


def test_a_state_dict_has_the_names_and_numbers_of_allennlp(tmp_path):
    """As AllenNLP loads them: other order of gates, 1 on the forget bias, other highway gate."""
    old = OldModel(tmp_path / "model")
    weights = {name: tensor.numpy() for name, tensor in Network(old).state_dict().items()}
    arrays = read_all_arrays(Path(old.weights))
    token, lstm = "elmo._elmo_lstm._token_embedder.", "elmo._elmo_lstm._elmo_lstm."
    assert len(weights) == 1 + 3 * 2 + 2 * 2 + 2 + 4 * 4 + 4
    np.testing.assert_array_equal(
        weights[token + "_char_embedding_weights"][1:], arrays["char_embed"]
    )
    assert not weights[token + "_char_embedding_weights"][0].any()
    kernel = arrays["CNN/W_cnn_1"][0].transpose(2, 1, 0)
    np.testing.assert_array_equal(weights[token + "char_conv_1.weight"], kernel)
    np.testing.assert_array_equal(weights[token + "char_conv_1.bias"], arrays["CNN/b_cnn_1"])
    high = [arrays["CNN_high_1/W_transform"].T, -arrays["CNN_high_1/W_carry"].T]
    np.testing.assert_array_equal(
        weights[token + "_highways._layers.1.weight"], np.concatenate(high)
    )
    np.testing.assert_array_equal(
        weights[token + "_projection.weight"], arrays["CNN_proj/W_proj"].T
    )
    cell = "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/"
    i, j, f, o = np.split(arrays[cell + "W_0"].T, 4)
    both = np.concatenate([i, f, j, o])
    layer = lstm + "backward_layer_1."
    np.testing.assert_array_equal(weights[layer + "input_linearity.weight"], both[:, :5])
    np.testing.assert_array_equal(weights[layer + "state_linearity.weight"], both[:, 5:])
    i, j, f, o = np.split(arrays[cell + "B"], 4)
    np.testing.assert_allclose(
        weights[layer + "state_linearity.bias"], np.concatenate([i, f + 1, j, o])
    )
    np.testing.assert_array_equal(
        weights[layer + "state_projection.weight"], arrays[cell + "W_P_0"].T
    )


def test_a_saved_network_gives_the_same_vectors(tmp_path):
    old = OldModel(tmp_path / "model")
    network, other = Network(old), Network(old)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
    torch.save(network.state_dict(), tmp_path / "network.th")
    other.load_state_dict(torch.load(tmp_path / "network.th"))
    ids = batch_to_ids([["a", "bank"]])
    wanted = network.elmo(ids)["elmo_representations"][0]
    torch.testing.assert_close(other.elmo(ids)["elmo_representations"][0], wanted)
