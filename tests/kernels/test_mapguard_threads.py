"""Threads without a lock change the table of watched ranges: its C code in a program of its own, with gcc's TSan."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PXD = Path(__file__).resolve().parents[2] / "src/logreel/kernels/bus_handler.pxd"
MAIN = r"""
#include <pthread.h>
#include <stdio.h>
enum { THREADS = 8, ROUNDS = 3000, HELD = 60, NUMBERS = 4096 };
static char bytes[4096];
static int owners[NUMBERS], twice;
static void* work(void* unused) {
    int64_t mine[HELD];
    for (int i = 0; i < HELD; i++) mine[i] = -1;
    for (int round = 0; round < ROUNDS; round++) {
        int at = round * 7 % HELD;
        if (mine[at] >= 0) {
            __atomic_sub_fetch(&owners[mine[at]], 1, __ATOMIC_SEQ_CST);
            logreel_forget(mine[at]);
        }
        mine[at] = logreel_watch(bytes, sizeof bytes);
        if (mine[at] < 0 || mine[at] >= NUMBERS || __atomic_add_fetch(&owners[mine[at]], 1, __ATOMIC_SEQ_CST) != 1
            || logreel_lost(mine[at]) != -1)
            __atomic_add_fetch(&twice, 1, __ATOMIC_SEQ_CST);
        /* The handler walks the same table. */
        if (round % 16 == 0) logreel_fill((uintptr_t)&unused);
    }
    return unused;
}
int main(void) {
    pthread_t threads[THREADS];
    if (logreel_install()) return 2;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    printf("%d\n", twice);
    return twice != 0;
}
"""


@pytest.mark.parametrize("sanitizer", ["", "-fsanitize=thread"])
def test_no_two_threads_get_the_same_range(tmp_path: Path, sanitizer: str) -> None:
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is not installed")
    code = re.search(r'"""(.*?)"""', PXD.read_text("utf-8"), re.DOTALL)
    assert code is not None
    # Cython reads the text as a string of Python.
    (tmp_path / "t.c").write_text(code[1].encode().decode("unicode_escape") + MAIN)
    words = [
        gcc,
        "-O2",
        "-g",
        "-pthread",
        "-w",
        *sanitizer.split(),
        "-o",
        str(tmp_path / "t"),
        str(tmp_path / "t.c"),
    ]
    built = subprocess.run(words, capture_output=True, text=True)
    if sanitizer and built.returncode:
        pytest.skip(f"gcc has no {sanitizer}: {built.stderr.strip().splitlines()[-1]}")
    assert built.returncode == 0, built.stderr
    # Two sanitizers in one process end it, and `make asan` preloads another one.
    alone = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([str(tmp_path / "t")], capture_output=True, text=True, timeout=120, env=alone)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("this kernel places memory where the sanitizer of this gcc does not expect it")
    assert not done.stderr, done.stderr
    assert (done.returncode, done.stdout) == (0, "0\n")
