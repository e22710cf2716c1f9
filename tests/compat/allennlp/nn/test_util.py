import torch

from elmore.compat.allennlp.nn.util import remove_sentence_boundaries


def test_the_first_and_the_last_position_of_each_sentence_go():
    tensor = torch.arange(1.0, 16.0).view(3, 5, 1)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]])
    found, new_mask = remove_sentence_boundaries(tensor, mask)
    assert found.squeeze(2).tolist() == [[2, 3, 4], [7, 0, 0], [0, 0, 0]]
    assert new_mask.dtype == torch.int64
    assert new_mask.tolist() == [[1, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert tensor[1, 2] == 8
