"""``planewise protocol``."""

from __future__ import annotations

import click

from ..output import write_document
from ..protocol import protocol_document


@click.command()
@click.pass_context
def protocol(ctx: click.Context) -> int:
    """Every schema identifier that planewise reads and writes, and its commands, as one JSON document.

    \b
    Example: planewise protocol
    """
    group = ctx.find_root().command
    assert isinstance(group, click.Group)
    write_document(protocol_document({name: cmd.get_short_help_str(200) for name, cmd in group.commands.items()}))
    return 0
