#!/bin/bash
# SPDX-License-Identifier: MIT
# User space's C files are as .clang-format wants them; "make format" puts them right.
cd "$(dirname "$0")/../.." || exit 1
echo 1..1
if faults=$(tests/format 2>&1); then
    echo 'ok 1 - every C file of user space has the form of .clang-format'
else
    echo 'not ok 1 - every C file of user space has the form of .clang-format'
    printf '# "make format" puts right:\n'
    printf '%s\n' "$faults" | sed 's/^/#   /'
    exit 1
fi
