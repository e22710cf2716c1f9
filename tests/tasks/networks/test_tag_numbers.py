import torch

from elmore.tasks.networks.tag_numbers import NO_LABEL, number_tags


def test_tags_are_numbered_by_label_and_others_have_no_number():
    numbers = number_tags([["O"], ["B-A", "B-NEW", "O"]], labels=("O", "B-A"))
    assert numbers.dtype == torch.int64
    assert numbers.tolist() == [[0, NO_LABEL, NO_LABEL], [1, NO_LABEL, 0]]
    assert number_tags([["B-NEW"]], labels=("O",)).tolist() == [[NO_LABEL]]


def test_no_loss_is_made_of_it():
    scores = torch.randn(1, 4, 2)
    costs = torch.nn.functional.cross_entropy(
        scores, torch.tensor([[1, NO_LABEL]]), ignore_index=NO_LABEL, reduction="none"
    )
    assert costs[0, 0] > 0
    assert costs[0, 1] == 0
