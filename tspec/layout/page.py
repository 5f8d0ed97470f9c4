"""A page that opens from disk: which rank holds which shard of each tensor."""

from __future__ import annotations

from tspec.layout.pictures import pictures
from tspec.layout.ranks import factorisations
from tspec.layout.sizes import Sizes, inputs
from tspec.layout.text import place_text
from tspec.resolve.program.sharding import LayoutDeclaration


def page(layout: LayoutDeclaration, rank: int, sizes: Sizes) -> str:
    """The page; shards of one rank have a thick border. Raises UnevenShards."""
    import jinja2  # late: text does without it

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tspec.layout"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = ["mesh", *(name for name, _ in layout.mesh.regroups)]
    where = [
        (name, place_text(axes, rank))
        for name, axes in zip(names, factorisations(layout.mesh), strict=True)
    ]
    return environment.get_template("page.html.j2").render(
        layout=layout,
        rank=rank,
        where=where,
        lacking=[name for name in inputs(layout) if name not in sizes.sizes],
        pictures=pictures(layout, rank, sizes),
    )
