#!/bin/bash -eu
# Builds all harnesses with their seeds, in the environment of OSS-Fuzz ($SRC, $OUT, compile_python_fuzzer).
cd "$SRC/logreel"
pip3 install .

for harness in fuzz/fuzz_*.py; do
    compile_python_fuzzer "$harness" --add-data fuzz/targets.py:. --add-data tests/support:support
done

python3 fuzz/seeds.py "$WORK/seeds"
for folder in "$WORK"/seeds/*; do
    zip -q -j "$OUT/fuzz_$(basename "$folder")_seed_corpus.zip" "$folder"/*
done
