# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What the mirror offers. The versions of all packages of a tree are part of its key, so that one
# key never stands for two different trees. The mirror is asked once a day (RIG_INDEX_AGE seconds);
# in between, and without a network, the last answer counts.

# private_apt SUITE CMD…: an apt command that knows only the packages of SUITE.
private_apt() {
    local dir=$CACHE/apt/$1 cmd=$2
    shift 2
    "$cmd" -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferencesparts=/dev/null -o Dir::State="$dir/state" \
        -o Dir::State::status="$dir/status" -o Dir::Cache="$dir/cache" -o APT::Sandbox::User=root \
        -o Acquire::Languages=none -o Acquire::Check-Valid-Until=false \
        -o Acquire::http::Timeout=20 -o APT::Update::Error-Mode=any "$@"
}

# index_fresh SUITE: the index is there, and not older than it may be.
index_fresh() {
    local stamp=$CACHE/apt/$1/asked
    [ -e "$stamp" ] && [ $(($(date +%s) - $(stat -c %Y "$stamp"))) -lt "${RIG_INDEX_AGE:-86400}" ]
}

# index_update SUITE: asks the mirror, if it was not asked lately.
index_update() {
    index_fresh "$1" || with_lock "$CACHE/lock/apt-$1" index_ask "$1"
}

index_ask() {
    local suite=$1 dir=$CACHE/apt/$1 log=$CACHE/log/index-$1.log
    ! index_fresh "$suite" || return 0
    mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial"
    : >"$dir/status"
    # shellcheck disable=SC2046
    debian_sources $(suites_of "$suite") >"$dir/sources.list"
    if ! private_apt "$suite" apt-get -q update >"$log" 2>&1; then
        say "the mirror does not answer for $suite: what it said $(index_age "$suite") counts ($log)"
    fi
    cat "$dir"/state/lists/*_InRelease 2>/dev/null | sha256sum | cut -c1-12 >"$dir/hash"
    [ "$(index_age "$suite")" = never ] || touch "$dir/asked"
}

index_age() {
    local newest
    newest=$(find "$CACHE/apt/$1/state/lists" -name '*_InRelease' -printf '%TY-%Tm-%Td\n' | sort | tail -n 1)
    [ -n "$newest" ] && echo "on $newest" || echo "never"
}

# resolved SUITE LIST: a file with "package version" for each package that a tree of LIST has.
resolved() {
    local suite=$1 list=$2 dir=$CACHE/apt/$1 file
    index_update "$suite"
    file=$dir/tree-$(key_of "$(cat "$dir/hash")" "$list" "$RIG_DIR/lib/index.sh")
    [ -e "$file" ] || with_lock "$CACHE/lock/apt-$suite" resolve "$suite" "$list" "$file"
    printf '%s\n' "$file"
}

# An unreachable mirror that never answered leaves an empty file: "any version".
resolve() {
    local names
    [ ! -e "$3" ] || return 0
    names=$(package_list "$2")
    # shellcheck disable=SC2086
    private_apt "$1" apt-get -s --no-install-recommends install '?essential' apt $names \
        >"$3.part" 2>"$CACHE/log/resolve-$1.log" ||
        [ ! -s "$CACHE/apt/$1/sources.list" ] || [ "$(index_age "$1")" = never ] ||
        fail "mirror" "$1 cannot install $(basename "$2")" "$CACHE/log/resolve-$1.log"
    sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1 \2/p' "$3.part" | sort >"$3.list"
    rm "$3.part"
    mv "$3.list" "$3"
}

# offered SUITE PACKAGE: its version there, or nothing.
offered() {
    local suite=$1 package=$2 dir=$CACHE/apt/$1 file
    index_update "$suite"
    file=$dir/offered-$package-$(cat "$dir/hash")
    if [ ! -e "$file" ]; then
        private_apt "$suite" apt-cache policy "$package" 2>/dev/null |
            sed -n 's/^ *Candidate: //p' | sed '/(none)/d' >"$file.$$"
        mv "$file.$$" "$file"
    fi
    cat "$file"
}
