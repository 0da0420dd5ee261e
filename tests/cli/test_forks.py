"""Commands that run in forks of a server, which many tests use: all is as in a process that a user starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.harness.cli_runner import environment
from support.harness.forked import AT_START, forked, forked_python, run_forked
from support.samples.mcap.builder import tiny

#: A command of another package, found in the current folder, that executes the code in $ACT.
PACKAGE = """
import os
from logreel.plugin import Answer, Command

def act(log):
    exec(os.environ["ACT"], {"log": log})
    return Answer("", {}, lambda: iter([]))

ACT = Command("act", "Execute code.", act, prints=True)
"""

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="forks need Linux")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a log, and a package with a command that executes code."""
    (tmp_path / "x.mcap").write_bytes(tiny())
    (tmp_path / "acting.py").write_text(PACKAGE)
    info = tmp_path / "acting-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: acting\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[logreel.commands]\nmcap.act = acting:ACT\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def both(*words: str, input: bytes | None = None, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command as a fork and as a process, which must give the same."""
    env = environment() | variables
    stdin = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
    fork, process = (
        subprocess.run(program, capture_output=True, env=env, timeout=60, **stdin)
        for program in (forked(*words), [sys.executable, "-m", "logreel", *words])
    )
    for found, due in ((fork.stdout, process.stdout), (fork.stderr, process.stderr)):
        assert found.splitlines() == due.splitlines()
    assert fork.returncode == process.returncode
    return fork


def acts(code: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    return both("mcap", "act", "x.mcap", ACT=code, **variables)


@pytest.mark.parametrize("line", ["info x.mcap", "info nothing.mcap", "convert x.mcap -o y.what"])
def test_output_and_exit_code_are_those_of_a_process(line: str) -> None:
    both(*line.split())


@pytest.mark.parametrize(
    ("code", "due"),
    [
        ("raise ValueError(1)", 1),
        ("import os; os._exit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("import os; os.abort()", -signal.SIGABRT),
        ("import os, signal; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(9)", 130),
        ("import os, sys; os.close(1); sys.stdout.write('lost')", None),
    ],
)
def test_a_command_ends_as_a_process_does(code: str, due: int | None) -> None:
    done = acts(code)
    assert due is None or done.returncode == due


def test_a_command_without_its_client_is_the_same(folder: Path) -> None:
    """Also where the server cannot run it, and where it is not waited for any longer."""
    env = environment() | {"ACT": "print('said', flush=True); import os; os.write(2, b'told'); os._exit(7)"}
    words = ("mcap", "act", "x.mcap")
    for variables in (env, env | {"PYTHONHASHSEED": "1"}):
        done = run_forked(forked(*words), variables, 60)
        assert (done.returncode, done.stdout, done.stderr) == (7, b"said\n", b"told")
        assert run_forked(forked(*words), variables, 60, joined=True).stdout == b"said\ntold"
    code = "import os, time; open('pid', 'w').write(f'{os.getpid()} '); time.sleep(60)"
    with pytest.raises(subprocess.TimeoutExpired):
        run_forked(forked(*words), env | {"ACT": code}, 2)
    end = time.monotonic() + 60
    while Path("/proc", (folder / "pid").read_text().strip()).exists():
        assert time.monotonic() < end
        time.sleep(0.01)


SCRIPT = """
import dataclasses, os, sys

@dataclasses.dataclass
class Words:
    given: list[str]

print(Words(sys.argv[1:]), sys.path[0] and os.path.basename(sys.path[0]), __name__, sys.argv[0])
sys.exit({"": None, "7": 7, "said": "said"}.get(sys.argv[1], 0))
"""


@pytest.mark.parametrize("word", ["", "7", "said", "other"])
def test_scripts_and_code_run_as_in_a_process(folder: Path, word: str) -> None:
    (folder / "script.py").write_text(SCRIPT)
    for words in (["script.py", word], ["-c", SCRIPT, word], ["-c", "1 / 0"]):
        fork, process = (
            subprocess.run(program, capture_output=True, env=environment(), timeout=60)
            for program in (forked_python(*words), [sys.executable, *words])
        )
        assert (fork.returncode, fork.stdout) == (process.returncode, process.stdout)
        assert fork.stderr.splitlines()[-1:] == process.stderr.splitlines()[-1:]


#: Prints what a process finds when it starts, and what it says when it ends.
FINDINGS = r"""
import atexit, gc, os, resource, signal, subprocess, sys, threading, time, warnings
print(sorted(os.environ.items()), os.getcwd(), os.getenv("HOME"))
print(oct(os.umask(0)), os.isatty(1), [os.readlink(f"/proc/self/fd/{n}")[:5] for n in (0, 1, 2)])
print(sys.argv, sys.path, sys.warnoptions, sys.flags.utf8_mode, len(os.listdir("/proc/self/fd")))
for s in (sys.stdin, sys.stdout, sys.stderr):
    print(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.newlines, s.fileno(), s.closed)
    print(type(s.buffer), s.buffer.name, s is getattr(sys, f"__{s.name[1:-1]}__"))
print("\xe4\udcff")
sys.stderr.write("\xe4\udcff")
print([(s, str(signal.getsignal(s)).split(" object")[0]) for s in signal.Signals])
print(signal.pthread_sigmask(signal.SIG_BLOCK, []))
print(time.tzname, time.localtime(0).tm_hour, gc.get_threshold(), gc.isenabled())
print(resource.getrlimit(resource.RLIMIT_AS), resource.getrlimit(resource.RLIMIT_NOFILE), time.process_time() < 30)
subprocess.run(["sh", "-c", "echo of a child; exit 3"])
atexit.register(print, "at the end")
threading.Thread(target=lambda: (time.sleep(0.2), print("late"))).start()
warnings.warn("one", DeprecationWarning)
warnings.warn("two")
print("not with error")
"""


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"PYTHONWARNINGS": "error", "PYTHONUNBUFFERED": "", "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"},
        {"PYTHONWARNINGS": "ignore::DeprecationWarning,always", "PYTHONUNBUFFERED": "1", "HOME": "/nowhere"},
    ],
    ids=["usual", "error", "unbuffered"],
)
def test_a_fork_finds_what_a_process_finds(variables: dict[str, str]) -> None:
    acts(FINDINGS, **variables)


def test_standard_input_and_its_end_are_passed_on() -> None:
    assert both("cat", "-", input=tiny()).stdout
    both("cat", "-", input=b"")
    script = 'logreel() { %s "$@"; }; logreel convert x.mcap -o - --format mcap | logreel info - --json'
    program = " ".join(f"'{word}'" for word in forked())
    done = subprocess.run(["sh", "-c", script % program], capture_output=True, env=environment(), timeout=60)
    assert b'"messages"' in done.stdout, done.stderr


def is_fork(**variables: str) -> bool:
    code = "import os; print(open(f'/proc/{os.getppid()}/cmdline').read())"
    env = environment() | {"ACT": code} | variables
    done = subprocess.run(
        forked("mcap", "act", "x.mcap"), capture_output=True, env=env, timeout=60, check=True
    )
    return b"support.harness.forked" in done.stdout


def test_what_acts_at_the_start_of_a_process_makes_one() -> None:
    assert is_fork()
    assert is_fork(PYTHONWARNINGS="error", COLUMNS="90")
    for name in ("PYTHONIOENCODING", "PYTHONUTF8", "OPENBLAS_NUM_THREADS", "LC_CTYPE", "PYTHONPATH"):
        assert AT_START.match(name)
    assert not is_fork(PYTHONHASHSEED="1")
    assert not is_fork(PYTHONPATH=f"{environment()['PYTHONPATH']}{os.pathsep}.")


def test_a_client_that_is_killed_ends_its_command(folder: Path) -> None:
    code = "import os, time; open('pid', 'w').write(f'{os.getpid()} '); time.sleep(60)"
    client = subprocess.Popen(forked("mcap", "act", "x.mcap"), env=environment() | {"ACT": code})
    end = time.monotonic() + 60
    while not (folder / "pid").exists() or not (folder / "pid").read_text().endswith(" "):
        assert time.monotonic() < end
        time.sleep(0.01)
    client.kill()
    client.wait()
    while Path("/proc", (folder / "pid").read_text().strip()).exists():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_commands_run_beside_each_other() -> None:
    code = "import os, time; open(os.environ['ME'], 'w'); exec(\"while not os.path.exists('b'): time.sleep(0.01)\")"
    clients = [
        subprocess.Popen(forked("mcap", "act", "x.mcap"), env=environment() | {"ACT": code, "ME": name})
        for name in ("a", "b")
    ]
    assert [client.wait(60) for client in clients] == [0, 0]


def test_the_server_outlives_clients_that_are_killed_and_ends_with_its_process() -> None:
    code = """
import os, signal, subprocess, sys, time
from support.harness.forked import SRC, forked
os.environ["PYTHONPATH"] = str(SRC)
command = forked("info", "x.mcap")
for n in range(12):
    client = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    time.sleep(n * 0.01)
    client.kill()
assert subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0
print(os.path.dirname(forked()[4]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    env = environment() | {
        "PYTHONPATH": f"{environment()['PYTHONPATH']}{os.pathsep}{Path(__file__).parents[1]}"
    }
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, timeout=100)
    assert done.returncode == -signal.SIGKILL, done.stderr
    end = time.monotonic() + 60
    while Path(done.stdout.decode().strip()).exists():
        assert time.monotonic() < end
        time.sleep(0.01)
