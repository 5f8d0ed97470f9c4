"""What is tolerated, and what is known to look wrong in a correct run."""

from __future__ import annotations

from dataclasses import replace
from math import inf, sqrt

import pytest
import torch
from torch import Tensor

from tspec.equivalence.compare import Comparer
from tspec.equivalence.cut import Cut
from tspec.equivalence.merge import Merged, RankShard, Spread, merge
from tspec.equivalence.recording import TensorName
from tspec.equivalence.tolerances import Allowed, allowed
from tspec.resolve.program.trials import Absolute, Combined, Noise, Number, Relative, Ulp

WEIGHT = TensorName("param_grads", "fc.weight", 1)
KEY = TensorName("param_grads", "key.bias", 1)
THREE = Combined("*", Number(3.0), Noise())
EPS = torch.finfo(torch.float32).eps


def times(reference: dict, samples: list[dict], name: TensorName, candidate: Tensor) -> float:
    return Comparer(reference, samples, THREE).compared(name, candidate.double()).times


@pytest.mark.parametrize(
    ("tolerance", "expected"),
    [
        (Number(0.5), Allowed(0.5)),
        (Ulp("bfloat16"), Allowed(2**-7)),
        (THREE, Allowed(0.75)),
        (Combined("+", Relative(Number(1e-4)), Absolute(Number(5e-4))), Allowed(1e-4, 5e-4)),
        (Combined("*", Number(2.0), Absolute(Number(0.5))), Allowed(0.0, 1.0)),
        (Combined("/", Noise(), Number(5.0)), Allowed(0.05)),
    ],
)
def test_a_tolerance_is_relative_and_absolute(tolerance, expected) -> None:
    found = allowed(tolerance, lambda noise: 0.25)
    assert (found.relative, found.absolute) == pytest.approx((expected.relative, expected.absolute))


def test_two_absolute_tolerances_are_not_multiplied() -> None:
    square = Combined("*", Absolute(Number(1.0)), Absolute(Number(1.0)))
    with pytest.raises(ValueError, match="is not multiplied or divided by an `atol`"):
        allowed(square, lambda noise: 0.0)


def test_the_reference_under_perturbed_inputs_says_how_far_is_too_far() -> None:
    reference = torch.ones(100)
    samples = [{WEIGHT: reference * (1 + shift)} for shift in (1e-5, 2e-5)]
    found = [
        times({WEIGHT: reference}, samples, WEIGHT, reference.double() * (1 + error))
        for error in (6e-5, 3e-5)
    ]
    assert found == pytest.approx([1.0, 0.5], rel=1e-2)


def test_a_norm_may_move_as_far_as_the_norms_of_all_gradients_together() -> None:
    """One perturbed run did not move the norm."""
    norm = TensorName("gradient_norms", "norm", 1)
    reference = {name: torch.full((50,), 0.1) for name in (WEIGHT, KEY)}
    reference[norm] = torch.tensor(1.0)
    sample = {**reference, WEIGHT: reference[WEIGHT] * 1.001, KEY: reference[KEY] * 0.999}
    found = [times(reference, [sample], norm, torch.tensor(1 + by)) for by in (2e-3, 4e-3)]
    assert found == pytest.approx([2 / 3, 4 / 3], rel=1e-2)


def test_a_buffer_has_the_round_off_of_what_it_is_made_from() -> None:
    """A statistic in float32 of activations in bfloat16, that no perturbed run moved."""
    buffer, output = TensorName("buffers", "fc.amax", 1), TensorName("outputs", "fc", 1)
    statistic, candidate = torch.ones(3), torch.full((3,), 1 + 2**-7).double()
    for dtype, expected in ((torch.bfloat16, 1 / 3), (torch.float32, 2**16 / 3)):
        reference = {output: torch.ones(4, dtype=dtype), buffer: statistic}
        assert times(reference, [reference], buffer, candidate) == pytest.approx(expected)


def test_without_movement_the_neighbouring_number_is_the_floor() -> None:
    reference = torch.ones(100)
    candidate = reference.double() * (1 + 3 * EPS)
    found = times({WEIGHT: reference}, [{WEIGHT: reference}], WEIGHT, candidate)
    assert found == pytest.approx(1.0)


def test_a_gradient_that_is_zero_but_for_round_off_may_be_any_round_off() -> None:
    zero = torch.full((16,), 1e-9)
    reference = {WEIGHT: torch.ones(4, 4), KEY: zero}
    assert times(reference, [reference], KEY, -2.0 * zero) <= 1
    assert times(reference, [reference], KEY, 1e5 * zero) > 100
    assert times({KEY: torch.zeros(4)}, [{KEY: torch.zeros(4)}], KEY, torch.zeros(4)) == 0


@pytest.mark.parametrize(
    "mask",
    [
        torch.full((4, 4), -1e9).triu(1),
        torch.full((4, 4), -torch.inf).triu(1),
        torch.arange(1000),
    ],
    ids=["large", "infinite", "whole"],
)
def test_a_mask_beside_it_does_not_make_an_input_round_off(mask: Tensor) -> None:
    hidden = TensorName("inputs", "decoder[memory]", 1)
    beside = TensorName("inputs", "decoder[mask]", 1)
    reference = {hidden: torch.full((64,), 1e-2).bfloat16(), beside: mask}
    wrong = reference[hidden].double() * 1.5
    assert times(reference, [reference], hidden, wrong) > 10
    assert times(reference, [reference], beside, mask) == 0
    assert times(reference, [reference], beside, torch.zeros_like(mask)) > 10


def test_adams_first_update_goes_either_way_where_the_gradient_is_round_off() -> None:
    """Half of the elements have a true gradient of zero; Adam moves each by the learning rate."""
    lr, before = 0.1, torch.ones(16)
    gradient = torch.cat([torch.ones(8), torch.full((8,), 1e-10)])
    params, initial = TensorName("params", "b", 1), TensorName("params", "b", 0)
    of = TensorName("param_grads", "b", 1)
    after = before - lr * gradient.sign()
    reference = {initial: before, of: gradient, params: after}
    flipped = torch.where(torch.arange(16) < 8, after, before + lr)
    assert times(reference, [reference], params, flipped) <= 1
    wrong = torch.where(torch.arange(16) < 8, before + 3 * lr, after)
    assert times(reference, [reference], params, wrong) > 1


def test_an_update_is_off_by_no_larger_part_than_the_gradient() -> None:
    """A gradient near Adam's epsilon (1e-8) gives an update of a size between."""
    params, initial = TensorName("params", "b", 1), TensorName("params", "b", 0)
    of = TensorName("param_grads", "b", 1)
    gradient, before, lr = torch.full((16,), 1e-3).double(), torch.zeros(16).double(), 0.1
    gradient[0] = 2e-7

    def after(gradient: Tensor) -> Tensor:
        return before - lr * gradient / (gradient.abs() + 1e-8)

    reference = {initial: before, of: gradient, params: after(gradient)}
    noise = {**reference, of: gradient + 1e-9}
    assert times(reference, [noise], params, after(gradient + 2e-9)) <= 1
    assert times(reference, [noise], params, 1.01 * after(gradient)) > 1


@pytest.mark.parametrize(
    ("candidate", "evidence"),
    [
        (torch.arange(1.0, 9) / 2, "the candidate is 0.5 times the reference"),
        (torch.arange(1.0, 9).flip(0), "the candidate has the same numbers in another order"),
        (torch.zeros(8), "the candidate is zero"),
        (torch.arange(1.0, 9) ** 2, ""),
        (torch.full((8,), inf), "the candidate is not finite"),
    ],
)
def test_evidence_says_what_a_wrong_tensor_has_to_do_with_the_right_one(
    candidate: Tensor, evidence: str
) -> None:
    reference = {WEIGHT: torch.arange(1.0, 9)}
    found = Comparer(reference, [reference], THREE).compared(WEIGHT, candidate.double())
    assert found.differs
    assert found.evidence.says == evidence


def test_a_loss_may_be_off_by_the_part_by_which_its_output_may_be() -> None:
    """Of a mean what one sample changes may cancel out."""
    output, loss = TensorName("outputs", "head", 1, 1), TensorName("losses", "loss", 1, 1)
    reference = {output: torch.full((4,), 2.0), loss: torch.tensor(2.0)}
    sample = {
        output: reference[output] * torch.tensor([1.01, 0.99, 1.01, 0.99]),
        loss: reference[loss],
    }
    assert times(reference, [sample], loss, torch.tensor(2.02)) == pytest.approx(1 / 3, rel=1e-3)
    assert times(reference, [sample], loss, torch.tensor(2.1)) > 1


def test_numbers_of_one_distribution_are_not_taken_for_one_order() -> None:
    """Weights that were not updated: sorted, they are closer, and within a loose tolerance."""
    numbers = torch.Generator().manual_seed(0)
    before, update = (torch.randn(2000, generator=numbers) for _ in range(2))
    reference = before + 0.2 * update
    found = Comparer({WEIGHT: reference}, [], Number(0.1)).compared(WEIGHT, before.double())
    assert found.differs
    assert found.evidence.suggests == "unknown"


def test_a_tensor_of_an_earlier_step_is_stale() -> None:
    before, now = (TensorName("params", "b", step) for step in (1, 2))
    reference = {before: torch.arange(1.0, 5), now: torch.arange(2.0, 6)}
    found = Comparer(reference, [], Number(1e-6)).compared(now, torch.arange(1.0, 5).double())
    assert found.evidence.suggests == "stale"
    assert found.evidence.says == "the candidate is the reference of step 1"


def test_replicas_may_differ_by_round_off_but_not_what_is_kept() -> None:
    params = TensorName("params", "b", 1)
    reference = {WEIGHT: torch.ones(4), params: torch.ones(4)}
    comparer = Comparer(reference, [reference], THREE)
    spread = Spread((0, 1), 2 * EPS * sqrt(4), 2.0)
    merged = Merged(torch.ones(4).double(), (), (spread,))
    assert list(comparer.faults(WEIGHT, merged)) == []
    [fault] = comparer.faults(params, merged)
    assert fault.fault.kind == "replicas"
    assert fault.fault.message == "replicas on ranks 0, 1 differ by 2.4e-07 of the tensor"


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (
            torch.tensor([2.0, -1, 1, 0]),
            "; the sum of the replicas is the reference, so a reduction is missing",
        ),
        (
            torch.tensor([3.0, 0, 2, 1]),
            "; the mean of the replicas is the reference, so a reduction is missing",
        ),
        (torch.tensor([3.0, 0, 2, 7]), ""),
        (
            torch.tensor([4.0, 1, 3, 2]),
            "; the sum of the replicas is 3 times the reference, so a reduction is missing",
        ),
    ],
)
def test_replicas_that_add_up_to_the_reference_lack_a_reduction(second: Tensor, says: str) -> None:
    first = torch.tensor([-1.0, 2, 0, 1])
    cut = Cut((4,), (((0, 4, 0, 1),),))
    merged = merge((4,), [RankShard(0, cut, first), RankShard(1, cut, second)])
    [fault] = Comparer({WEIGHT: torch.ones(4)}, [], Number(1e-6)).faults(WEIGHT, merged)
    assert fault.fault.message.partition("of the tensor")[2] == says


def test_a_replica_that_was_left_at_zero_lacks_no_reduction() -> None:
    """The other one is the reference by itself, and buffers are no summands."""
    mean = TensorName("buffers", "norm.running_mean", 1)
    cut = Cut((4,), (((0, 4, 0, 1),),))
    merged = merge((4,), [RankShard(0, cut, torch.ones(4)), RankShard(1, cut, torch.zeros(4))])
    [fault] = Comparer({mean: torch.ones(4)}, [], Number(1e-6)).faults(mean, merged)
    assert fault.fault.message == "replicas on ranks 0, 1 differ by 1.0e+00 of the tensor"


@pytest.mark.parametrize(
    ("first", "second", "suggests"),
    [
        (torch.tensor([2.0, 3, 4, 5]), torch.tensor([1.0, 2, 3, 4]), "stale"),
        (torch.tensor([2.0, 3, 3, 4]), torch.tensor([1.0, 2, 4, 5]), "stale"),
        (torch.tensor([0.0, 3, 2, 5]), torch.tensor([4.0, 3, 6, 5]), "missing reduction"),
        (torch.tensor([2.0, 3, 4, 5]), torch.tensor([2.0, 3, 4, 5.5]), "unknown"),
    ],
)
def test_replicas_with_earlier_numbers_are_stale_and_lack_no_reduction(
    first: Tensor, second: Tensor, suggests: str
) -> None:
    """One kept them, or each its half. The mean is within a wide tolerance, and so is a replica."""
    begin, now = TensorName("params", "b", 0), TensorName("params", "b", 1)
    cut = Cut((4,), (((0, 4, 0, 1),),))
    reference = {begin: torch.arange(1.0, 5), now: torch.arange(2.0, 6)}
    merged = merge((4,), [RankShard(0, cut, first), RankShard(1, cut, second)])
    wide = 0.15  # of a norm of 7.3: 1.1
    [fault] = Comparer(reference, [], Number(wide)).faults(now, merged)
    assert fault.evidence.suggests == suggests


def test_a_replica_of_a_constant_is_not_stale() -> None:
    """Positions are the same in each micro-batch; one rank has other ones."""
    before, now = (TensorName("inputs", "pos", 1, batch) for batch in (1, 2))
    cut, places = Cut((4,), (((0, 4, 0, 1),),)), torch.arange(4.0)
    merged = merge((4,), [RankShard(0, cut, places), RankShard(1, cut, places + 1)])
    [fault] = Comparer({before: places, now: places}, [], Number(1e-6)).faults(now, merged)
    assert fault.evidence.suggests == "unknown"


def test_a_factor_that_is_nearly_one_is_not_said_to_be_one() -> None:
    reference = torch.ones(4)
    found = Comparer({WEIGHT: reference}, [], THREE).compared(WEIGHT, reference.double() * 1.00001)
    assert found.evidence.says == "the candidate is 1.00001 times the reference"


def test_a_buffer_is_as_uncertain_as_what_its_module_is_given() -> None:
    """Samples move a running mean of many numbers by less than the numbers themselves."""
    buffer, given = TensorName("buffers", "norm.mean", 1), TensorName("inputs", "norm", 1, 1)
    values = {buffer: torch.ones(1), given: torch.ones(8)}
    sample = {**values, given: values[given] * (1 + 8 * EPS)}
    for of, expected in ((given, 24 * EPS), (replace(given, name="fc"), 3 * EPS)):
        reference, moved = ({buffer: each[buffer], of: each[given]} for each in (values, sample))
        found = Comparer(reference, [moved], THREE).compared(buffer, reference[buffer])
        assert found.tolerated == pytest.approx(expected, rel=1e-3)


def test_a_buffer_is_not_far_more_uncertain_than_its_samples() -> None:
    """Many numbers of a maximum that samples hardly move are not off by all that the input is."""
    buffer, given = TensorName("buffers", "norm.most", 1), TensorName("inputs", "norm", 1, 1)
    reference = {buffer: torch.ones(20), given: torch.ones(8)}
    sample = {buffer: reference[buffer] * 1.01, given: reference[given] * 1.5}
    found = Comparer(reference, [sample], THREE).compared(buffer, reference[buffer])
    assert found.tolerated == pytest.approx(3 * 1.5 * 0.01, rel=1e-3)


def test_a_buffer_that_was_not_updated_is_wrong_however_uncertain_the_input_is() -> None:
    before, buffer = (TensorName("buffers", "norm.most", step) for step in (1, 2))
    given = TensorName("inputs", "norm", 2, 1)
    reference = {before: torch.ones(3), given: torch.ones(8), buffer: torch.full((3,), 1.2)}
    sample = {each: tensor * 1.02 for each, tensor in reference.items()}
    compare = Comparer(reference, [{**sample, given: reference[given] * 1.5}], THREE).compared
    assert compare(buffer, reference[before] * 1.01).differs
    assert not compare(buffer, torch.full((3,), 1.01 * 1.05 * 1.2)).differs
    assert not compare(buffer, torch.full((3,), 1.1 * 1.2)).differs


def test_what_replicas_make_together_is_compared_where_they_are_reduced_later() -> None:
    reference = torch.tensor([1.0, 2.0, 3.0])
    name = TensorName("param_grads", "fc", 1)
    comparer = Comparer({name: reference}, [], THREE)
    rows = Cut((3,), (((0, 3, 0, 1),),))
    part = torch.tensor([0.5, 4.0, -1.0])
    for other, differs in ((reference - part, False), (2 * reference - part, False), (part, True)):
        merged = merge((3,), [RankShard(0, rows, part), RankShard(1, rows, other)])
        if not merged.spreads:
            continue
        assert comparer.reduced(name, merged).differs == differs
        whole = merge((3,), [RankShard(0, rows, reference)])
        assert comparer.is_nearer(name, whole, merged)
        assert not comparer.is_nearer(name, merged, whole)
