"""The typed tree of a file: every kind of node under one name to import.

How nodes compare, and where comments are kept, stands in `expressions`.
"""

from tspec.syntax.declarations import (
    Across as Across,
)
from tspec.syntax.declarations import (
    Claim as Claim,
)
from tspec.syntax.declarations import (
    Clause as Clause,
)
from tspec.syntax.declarations import (
    Consecutive as Consecutive,
)
from tspec.syntax.declarations import (
    Contains as Contains,
)
from tspec.syntax.declarations import (
    Context as Context,
)
from tspec.syntax.declarations import (
    ContextField as ContextField,
)
from tspec.syntax.declarations import (
    Declaration as Declaration,
)
from tspec.syntax.declarations import (
    During as During,
)
from tspec.syntax.declarations import (
    Each as Each,
)
from tspec.syntax.declarations import (
    Edition as Edition,
)
from tspec.syntax.declarations import (
    Else as Else,
)
from tspec.syntax.declarations import (
    Entity as Entity,
)
from tspec.syntax.declarations import (
    Entry as Entry,
)
from tspec.syntax.declarations import (
    Event as Event,
)
from tspec.syntax.declarations import (
    Every as Every,
)
from tspec.syntax.declarations import (
    Expect as Expect,
)
from tspec.syntax.declarations import (
    Field as Field,
)
from tspec.syntax.declarations import (
    File as File,
)
from tspec.syntax.declarations import (
    For as For,
)
from tspec.syntax.declarations import (
    Frequent as Frequent,
)
from tspec.syntax.declarations import (
    Group as Group,
)
from tspec.syntax.declarations import (
    Inferred as Inferred,
)
from tspec.syntax.declarations import (
    Instant as Instant,
)
from tspec.syntax.declarations import (
    Invariant as Invariant,
)
from tspec.syntax.declarations import (
    Let as Let,
)
from tspec.syntax.declarations import (
    Module as Module,
)
from tspec.syntax.declarations import (
    Once as Once,
)
from tspec.syntax.declarations import (
    OnlyDuring as OnlyDuring,
)
from tspec.syntax.declarations import (
    Ordered as Ordered,
)
from tspec.syntax.declarations import (
    Reject as Reject,
)
from tspec.syntax.declarations import (
    Response as Response,
)
from tspec.syntax.declarations import (
    RuleSetting as RuleSetting,
)
from tspec.syntax.declarations import (
    Thinning as Thinning,
)
from tspec.syntax.declarations import (
    Use as Use,
)
from tspec.syntax.declarations import (
    When as When,
)
from tspec.syntax.declarations import (
    Window as Window,
)
from tspec.syntax.expressions import (
    NO_TRIVIA as NO_TRIVIA,
)
from tspec.syntax.expressions import (
    And as And,
)
from tspec.syntax.expressions import (
    Argument as Argument,
)
from tspec.syntax.expressions import (
    Arithmetic as Arithmetic,
)
from tspec.syntax.expressions import (
    Attribute as Attribute,
)
from tspec.syntax.expressions import (
    Boolean as Boolean,
)
from tspec.syntax.expressions import (
    Call as Call,
)
from tspec.syntax.expressions import (
    Choice as Choice,
)
from tspec.syntax.expressions import (
    Comment as Comment,
)
from tspec.syntax.expressions import (
    Comparator as Comparator,
)
from tspec.syntax.expressions import (
    Comparison as Comparison,
)
from tspec.syntax.expressions import (
    Dotted as Dotted,
)
from tspec.syntax.expressions import (
    Expr as Expr,
)
from tspec.syntax.expressions import (
    Float as Float,
)
from tspec.syntax.expressions import (
    Implies as Implies,
)
from tspec.syntax.expressions import (
    Index as Index,
)
from tspec.syntax.expressions import (
    Integer as Integer,
)
from tspec.syntax.expressions import (
    List as List,
)
from tspec.syntax.expressions import (
    Name as Name,
)
from tspec.syntax.expressions import (
    NamedType as NamedType,
)
from tspec.syntax.expressions import (
    Negative as Negative,
)
from tspec.syntax.expressions import (
    Node as Node,
)
from tspec.syntax.expressions import (
    Not as Not,
)
from tspec.syntax.expressions import (
    Or as Or,
)
from tspec.syntax.expressions import (
    Percentage as Percentage,
)
from tspec.syntax.expressions import (
    Quantity as Quantity,
)
from tspec.syntax.expressions import (
    Set as Set,
)
from tspec.syntax.expressions import (
    String as String,
)
from tspec.syntax.expressions import (
    Trivia as Trivia,
)
from tspec.syntax.expressions import (
    Type as Type,
)
from tspec.syntax.expressions import (
    Word as Word,
)
from tspec.syntax.expressions import (
    dotted_text as dotted_text,
)
from tspec.syntax.sharding import (
    Dimension as Dimension,
)
from tspec.syntax.sharding import (
    Dims as Dims,
)
from tspec.syntax.sharding import (
    Flat as Flat,
)
from tspec.syntax.sharding import (
    Layout as Layout,
)
from tspec.syntax.sharding import (
    Mesh as Mesh,
)
from tspec.syntax.sharding import (
    Place as Place,
)
from tspec.syntax.sharding import (
    Product as Product,
)
from tspec.syntax.sharding import (
    Regroup as Regroup,
)
from tspec.syntax.sharding import (
    Shape as Shape,
)
from tspec.syntax.sharding import (
    SizeName as SizeName,
)
from tspec.syntax.sharding import (
    SizeNumber as SizeNumber,
)
from tspec.syntax.sharding import (
    SizeSum as SizeSum,
)
from tspec.syntax.sharding import (
    Split as Split,
)
from tspec.syntax.sharding import (
    Stage as Stage,
)
from tspec.syntax.sharding import (
    Tied as Tied,
)
from tspec.syntax.trials import (
    At as At,
)
from tspec.syntax.trials import (
    Candidate as Candidate,
)
from tspec.syntax.trials import (
    Change as Change,
)
from tspec.syntax.trials import (
    Compare as Compare,
)
from tspec.syntax.trials import (
    Cover as Cover,
)
from tspec.syntax.trials import (
    EqualWhen as EqualWhen,
)
from tspec.syntax.trials import (
    Equivalence as Equivalence,
)
from tspec.syntax.trials import (
    Events as Events,
)
from tspec.syntax.trials import (
    ExpectAll as ExpectAll,
)
from tspec.syntax.trials import (
    Fix as Fix,
)
from tspec.syntax.trials import (
    Happening as Happening,
)
from tspec.syntax.trials import (
    Localize as Localize,
)
from tspec.syntax.trials import (
    Passes as Passes,
)
from tspec.syntax.trials import (
    RankScript as RankScript,
)
from tspec.syntax.trials import (
    Reference as Reference,
)
from tspec.syntax.trials import (
    Replay as Replay,
)
from tspec.syntax.trials import (
    Require as Require,
)
from tspec.syntax.trials import (
    Resume as Resume,
)
from tspec.syntax.trials import (
    Run as Run,
)
from tspec.syntax.trials import (
    Save as Save,
)
from tspec.syntax.trials import (
    Setting as Setting,
)
from tspec.syntax.trials import (
    StepScript as StepScript,
)
from tspec.syntax.trials import (
    Sweep as Sweep,
)
from tspec.syntax.trials import (
    Test as Test,
)
from tspec.syntax.trials import (
    Trace as Trace,
)
from tspec.syntax.trials import (
    UsesLayout as UsesLayout,
)
from tspec.syntax.trials import (
    Violates as Violates,
)
from tspec.syntax.trials import (
    Within as Within,
)
