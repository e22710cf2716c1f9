import math

import pytest
import torch

from elmore.tasks.networks.label_choice import (
    NO_NUMBER,
    LabelChooser,
    best_label,
    label_loss,
)

LOGITS = torch.tensor([[0.0, 1.0, -1.0], [2.0, 0.5, 0.5]])


def test_the_loss_is_the_mean_of_what_the_right_labels_lack():
    chooser = LabelChooser(tokens=None, labels=("a", "b", "c"))
    chooser.score = lambda batch: batch
    probabilities = chooser.predict(LOGITS)
    assert [best_label(each) for each in probabilities] == ["b", "a"]
    assert [sum(each.values()) for each in probabilities] == pytest.approx([1, 1])
    wanted = -(math.log(probabilities[0]["c"]) + math.log(probabilities[1]["a"])) / 2
    found = label_loss(LOGITS, torch.tensor([2, 0]))
    assert found.item() == pytest.approx(wanted, rel=1e-5)


def test_labels_that_training_did_not_have_add_no_loss():
    alone = label_loss(LOGITS[1:], torch.tensor([0]))
    both = label_loss(LOGITS, torch.tensor([NO_NUMBER, 0]))
    assert both.item() == pytest.approx(alone.item())
    logits = LOGITS.clone().requires_grad_()
    none = label_loss(logits, torch.full((2,), NO_NUMBER))
    none.backward()
    assert none.item() == 0
    assert not logits.grad.any()


def test_without_gold_labels_there_is_no_loss():
    with pytest.raises(ValueError, match="prepared without gold labels"):
        label_loss(LOGITS, None)
