"""``logreel completion``."""

from __future__ import annotations

import os
import sys

import rich_click as click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", metavar="[bash|zsh|fish]", type=click.Choice(SHELLS), required=False)
def completion(shell: str | None) -> int:
    """Print a completion script for your shell.

    Put this into its start-up file: eval "$(logreel completion bash)", and for fish: logreel completion fish
    | source
    """
    from click.shell_completion import get_completion_class

    from logreel.cli.app import logreel
    from logreel.cli.run import COMPLETE
    from logreel.errors import UsageError

    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    kind = get_completion_class(name) if name in SHELLS else None
    if kind is None:
        raise UsageError(f"which shell? Say one of {', '.join(SHELLS)}")
    sys.stdout.write(kind(logreel, {}, "logreel", COMPLETE).source() + "\n")
    return 0
