"""The typed tree of a file: every kind of node under one name to import.

`expressions` documents the comparison of nodes and the place of comments.
"""

# isort: off
from tspec.syntax.declarations import (
    Across as Across, Claim as Claim, Clause as Clause, Consecutive as Consecutive,
    Contains as Contains, ContextDeclaration as ContextDeclaration, ContextField as ContextField,
    Declaration as Declaration, During as During, Each as Each, Edition as Edition, Else as Else,
    Entity as Entity, Entry as Entry, Event as Event, Every as Every, Expect as Expect,
    Field as Field, File as File, For as For, Frequent as Frequent, Group as Group,
    Inferred as Inferred, Instant as Instant, Invariant as Invariant, Let as Let,
    Module as Module, Once as Once, OnlyDuring as OnlyDuring, Ordered as Ordered,
    Reject as Reject, Response as Response, RuleSetting as RuleSetting, Thinning as Thinning,
    Use as Use, When as When, Window as Window, keyword as keyword,
)  # fmt: skip
from tspec.syntax.expressions import (
    NO_TRIVIA as NO_TRIVIA, And as And, Argument as Argument, Arithmetic as Arithmetic,
    Attribute as Attribute, Boolean as Boolean, Call as Call, Choice as Choice,
    Comment as Comment, Comparator as Comparator, Comparison as Comparison, Dotted as Dotted,
    Expr as Expr, Float as Float, Implies as Implies, Index as Index, Integer as Integer,
    List as List, Name as Name, NamedType as NamedType, Negative as Negative, Node as Node,
    Not as Not, Or as Or, Percentage as Percentage, Quantity as Quantity, Set as Set,
    String as String, Trivia as Trivia, Type as Type, Word as Word, dotted_text as dotted_text,
)  # fmt: skip
from tspec.syntax.sharding import (
    Dimension as Dimension, Dims as Dims, Flat as Flat, Layout as Layout, Mesh as Mesh,
    Place as Place, Product as Product, Regroup as Regroup, Shape as Shape, SizeName as SizeName,
    SizeNumber as SizeNumber, SizeSum as SizeSum, Split as Split, Stage as Stage, Tied as Tied,
)  # fmt: skip
from tspec.syntax.trials import (
    At as At, Candidate as Candidate, Change as Change, Compare as Compare, Cover as Cover,
    EqualWhen as EqualWhen, Equivalence as Equivalence, Events as Events, ExpectAll as ExpectAll,
    Fix as Fix, GeneratedInput as GeneratedInput, Happening as Happening, Localize as Localize,
    Passes as Passes,
    RankScript as RankScript, Reference as Reference, Replay as Replay, Require as Require,
    Resume as Resume, Run as Run, Save as Save, Setting as Setting, StepScript as StepScript,
    Store as Store, Sweep as Sweep, Test as Test, UsesLayout as UsesLayout,
    UsesTrace as UsesTrace,
    Violates as Violates, Within as Within,
)  # fmt: skip
