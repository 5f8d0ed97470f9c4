"""Names of drafts: words of what each says, short enough to read, and distinct."""

from tspec.infer.drafts import Draft
from tspec.infer.emit import LONGEST_NAME, name_all, name_of
from tspec.infer.heads import Claim, RuleHead

GRADIENT = RuleHead(("p in parameters",), "world", "before optimizer.step every 10 steps", ())


def draft(expect: str, when: str | None = None, head: RuleHead = GRADIENT) -> Draft:
    return Draft(Claim("test", head, expect, "It breaks."), when, 9, 0)


def test_a_guard_of_what_is_read_is_not_in_the_name() -> None:
    guarded = name_of(draft("same(p.grad)", "present(p.grad)"))
    assert guarded == "same_parameter_grad_across_world_before_optimizer_step"
    step = RuleHead(("p in parameters",), None, "each step", ())
    other = name_of(draft("finite(p.data)", "present(p.grad)", step))
    assert other == "finite_parameter_data_each_step_when_present_parameter_grad"


def test_a_long_name_loses_its_condition_first_and_ends_in_a_word() -> None:
    cleared = RuleHead(("p in parameters",), None, "after optimizer.zero_grad", ())
    assert (
        name_of(draft("not present(p.grad) or norm(p.grad) == 0", head=cleared))
        == "no_parameter_grad_after_optimizer_zero_grad"
    )
    felt = "optimizer.step.lr * norm(p.grad) > 4 * ulp(float32) * norm(p.data)"
    assert (
        name_of(draft("finite(p.data)", felt))
        == "finite_parameter_data_across_world_before_optimizer_step"
    )
    long = name_of(draft(" and ".join(["finite(p.data)"] * 9)))
    assert len(long) <= LONGEST_NAME
    assert long.endswith("_finite_parameter")


def test_drafts_that_say_nearly_the_same_are_numbered() -> None:
    felt = "optimizer.step.lr * norm(p.grad) > {} * ulp(float32) * norm(p.data)"
    drafts = [draft("finite(p.data)", felt.format(factor)) for factor in (4, 8, 16)]
    names = name_all(drafts)
    plain = "finite_parameter_data_across_world_before_optimizer_step"
    assert sorted(names.values()) == [plain, f"{plain}_2", f"{plain}_3"]
    assert names == name_all(drafts[::-1])
