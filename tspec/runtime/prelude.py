"""All names that generated modules use."""

from tspec.builtin.numbers import INF, NAN
from tspec.due import ActionRecord
from tspec.runtime.calls.call import KeptField, Pattern, own
from tspec.runtime.calls.log import Retention
from tspec.runtime.checker import Checker, CheckerOptions
from tspec.runtime.claims import call_only_during, change_only_during, contains, in_order
from tspec.runtime.columns import Want
from tspec.runtime.edges import Ref
from tspec.runtime.features import cast_feature, difference_feature, feature
from tspec.runtime.folds import fold_list
from tspec.runtime.functions import apply, is_of_class
from tspec.runtime.generated import GeneratedModule, Unopened
from tspec.runtime.given import CompiledFor
from tspec.runtime.install import Installed
from tspec.runtime.joint import JointDecision
from tspec.runtime.live.watch import EntitySpec, EventSpec, FieldSpec, GroupSpec, WatchSpec
from tspec.runtime.members import (
    constant,
    first,
    first_on_rank,
    group_fold,
    leaf,
    over,
    previous,
    transpose,
)
from tspec.runtime.pending import SubjectChoice
from tspec.runtime.results import RuleRecord
from tspec.runtime.series.history import TimeFold
from tspec.runtime.values import (
    NOT_RECORDED,
    at_least,
    at_most,
    both,
    contained,
    either,
    equal,
    greater,
    identical,
    implied,
    indexed,
    less,
    minus,
    negation,
    opposite,
    plus,
    present,
    quotient,
    times,
    unequal,
)

__all__ = [
    "INF",
    "NAN",
    "NOT_RECORDED",
    "ActionRecord",
    "Checker",
    "CheckerOptions",
    "CompiledFor",
    "EntitySpec",
    "EventSpec",
    "FieldSpec",
    "GeneratedModule",
    "GroupSpec",
    "Installed",
    "JointDecision",
    "KeptField",
    "Pattern",
    "Ref",
    "Retention",
    "RuleRecord",
    "SubjectChoice",
    "TimeFold",
    "Unopened",
    "Want",
    "WatchSpec",
    "apply",
    "at_least",
    "at_most",
    "both",
    "call_only_during",
    "cast_feature",
    "change_only_during",
    "constant",
    "contained",
    "contains",
    "difference_feature",
    "either",
    "equal",
    "feature",
    "first",
    "first_on_rank",
    "fold_list",
    "greater",
    "group_fold",
    "identical",
    "implied",
    "in_order",
    "indexed",
    "is_of_class",
    "leaf",
    "less",
    "minus",
    "negation",
    "opposite",
    "over",
    "own",
    "plus",
    "present",
    "previous",
    "quotient",
    "times",
    "transpose",
    "unequal",
]
