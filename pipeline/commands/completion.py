"""``planewise completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "fish", "zsh")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print what makes SHELL complete planewise's commands and options.

    \b
    Example, in ~/.bashrc: eval "$(planewise completion bash)"
    """
    kind = get_completion_class(shell)
    assert kind is not None  # click knows the three shells.
    click.echo(kind(context.find_root().command, {}, "planewise", "_PLANEWISE_COMPLETE").source())
    return 0
