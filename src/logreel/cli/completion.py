"""``logreel completion``: prints completion scripts for shells, and answers their requests."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from logreel.cli.help import verb

if TYPE_CHECKING:
    from threading import Timer

#: Seconds after which the answer to the Tab key is given up.
PATIENCE = 5.0

BASH = r"""
_logreel_complete() {
    local kind program=${1/#\~\//$HOME/}
    COMPREPLY=()
    { read -r kind; mapfile -t COMPREPLY; } < <(
        _LOGREEL_COMPLETE=bash "$program" "$COMP_LINE" "$COMP_POINT" "$COMP_WORDBREAKS" 2>/dev/null
    )
    case $kind in
        file) compopt -o default ;;
        dir) compopt -o dirnames ;;
    esac
}
complete -F _logreel_complete logreel
"""

ZSH = r"""
#compdef logreel
_logreel() {
    local -a lines values shown
    local line value help program=${${(Q)words[1]}/#\~\//$HOME/}
    lines=("${(@f)$(_LOGREEL_COMPLETE=zsh $program "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    compset -P '--*='
    case ${lines[1]} in
        file) _files; return ;;
        dir) _files -/; return ;;
    esac
    for line in "${(@)lines[2,-1]}"; do
        [[ -n $line ]] || continue
        value=${line%%$'\t'*} help=${line#*$'\t'}
        values+=("$value")
        shown+=("$value${help:+  -- $help}")
    done
    (( $#values )) && compadd -l -d shown -a values
}
if [[ ${funcstack[1]} = _logreel ]]; then
    _logreel "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -D; }
    compdef _logreel logreel
fi
"""

FISH = r"""
function __logreel_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l lines (env _LOGREEL_COMPLETE=fish $program $words "$current" 2>/dev/null)
    switch "$lines[1]"
        case file
            __fish_complete_path "$current"
        case dir
            __fish_complete_directories "$current"
        case '*'
            set -e lines[1]
            printf '%s\n' $lines
    end
end
complete -c logreel -f -a '(__logreel_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
#: Characters that need no quoting in a shell word.
_PLAIN = re.compile(r"[A-Za-z0-9_./:=@%+,-]")


@verb(
    examples={
        "logreel completion bash >> ~/.bashrc": "complete verbs, options and topics in new shells",
        "logreel completion fish | source": "the same in this shell, for fish",
    },
    numpy=False,
)
@click.argument("shell", metavar="[bash|zsh|fish]", type=click.Choice([*SCRIPTS]), required=False)
def completion(shell: str | None) -> int:
    """Print a script that makes the shell complete verbs, options, files, topics and fields.

    For bash and zsh, add to the start-up file: eval "$(logreel completion bash)". For fish: logreel completion fish |
    source
    """
    from logreel.errors import UsageError

    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    if name not in SCRIPTS:
        raise UsageError(f"which shell? Say one of {', '.join(SCRIPTS)}")
    sys.stdout.write(SCRIPTS[name].lstrip("\n"))
    return 0


def complete(shell: str, args: Sequence[str]) -> int:
    """Print the completions at the cursor for a script of SCRIPTS; after an error, none.

    The first line is ``file`` or ``dir`` if the shell should complete names itself, else ``plain``. The other lines are
    completions: for bash the text to insert, for other shells the value, a tab and a hint.

    args  bash: the line, the cursor position in it, and COMP_WORDBREAKS; other shells: the words after the command, the
          last one up to the cursor
    """
    timer = _give_up_later()
    try:
        if shell == "bash":
            line, point, breaks = args
            words, last = split_line(line[: int(point)], breaks)
            words = words[1:]
        else:
            words = list(args[:-1])
            last = split_line(args[-1], "")[1] if shell == "fish" else Word(args[-1])
        lines = _completion_lines(shell, words, last)
    except Exception:
        lines = ["plain"]
    finally:
        timer.cancel()
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _give_up_later() -> Timer:
    """Start a timer that ends this process after PATIENCE seconds unless it is cancelled."""
    from threading import Timer

    # A log that opens slowly must not block the shell; kernels do not react to signals, so exit the process.
    timer = Timer(float(os.environ.get("LOGREEL_COMPLETE_SECONDS", PATIENCE)), os._exit, (0,))
    timer.daemon = True
    timer.start()
    return timer


class Word(NamedTuple):
    """The word at the cursor.

    text   the word without quotes
    quote  the quote character that is still open at the end, or empty
    fixed  number of leading characters of *text* that bash does not replace
    """

    text: str
    quote: str = ""
    fixed: int = 0


def split_line(line: str, breaks: str) -> tuple[list[str], Word]:
    """Split a line like a shell; return all words but the last, and the last one, which may be empty.

    breaks  characters after which bash starts a new word to complete
    """
    words: list[str] = []
    text, quote, fixed, begun, escaped = "", "", 0, False, False
    for char in line:
        if escaped:
            text, escaped = text + char, False
        elif char == "\\" and quote != "'":
            escaped = begun = True
        elif quote:
            quote = "" if char == quote else quote
            text += char if quote else ""
        elif char in "'\"":
            quote, begun = char, True
            fixed = len(text)
        elif char.isspace():
            if begun:
                words.append(text)
            text, fixed, begun = "", 0, False
        else:
            text, begun = text + char, True
            if char in breaks:
                fixed = len(text)
    return words, Word(text, quote, fixed)


def _completion_lines(shell: str, words: list[str], last: Word) -> list[str]:
    from click.shell_completion import ShellComplete

    from logreel.cli.app import logreel

    items = ShellComplete(logreel, {"obj": words}, "logreel", "").get_completions(words, last.text)
    kinds = {item.type for item in items}
    for names in ("file", "dir"):
        if names in kinds:
            return [names]
    # In --topic=/im, only the part after = is completed.
    option, sign, _ = last.text.partition("=")
    before = option + sign if sign and option[:2] == "--" else ""
    lines = ["plain"]
    for item in items:
        value = str(item.value)
        if any(char < " " for char in value):
            # Topics may contain control characters, lines of a shell must not.
            continue
        if shell == "bash":
            rest = (before + value)[last.fixed :]
            lines.append(rest if last.quote else "".join(map(_quoted, rest)))
        else:
            hint = " ".join((item.help or "").split())
            lines.append(f"{before if shell == 'fish' else ''}{value}\t{hint}")
    return lines


def _quoted(char: str) -> str:
    return char if _PLAIN.match(char) or char > "\x7f" else f"\\{char}"
