# A folder that weft dist packed: nothing to build, a Java runtime that may come along, the GPU tests. Sourced; expects
# $home and $build. Where the folder cannot be written, only the runtime must have been unpacked before.

runtime=$home/runtime/java

choose_java() {
    local carried
    for carried in "$home"/runtime/*.tar.*; do
        if [ -f "$carried" ] && [ ! -d "$runtime" ]; then
            if [ ! -w "$home" ] || [ ! -w "$home/runtime" ]; then
                say "$home cannot be written, and its Java runtime is not unpacked: run ./weft once where it can be"
                return 1
            fi
            mkdir -p "$build" && one_at_a_time unpack_runtime "$carried" || return 1
        fi
    done
    if [ -d "$runtime" ]; then
        echo "$runtime"
    else
        find_java java
    fi
}

# Asks again, because another launcher may have unpacked it while this one waited.
unpack_runtime() {
    local part=$runtime.part folder
    [ ! -d "$runtime" ] || return 0
    say "unpacking the Java runtime, once..."
    rm -rf "$part"
    if mkdir "$part" && unpack "$1" "$part"; then
        for folder in "$part" "$part"/*; do
            if [ -x "$folder/bin/java" ] && [ "$(java_major "$folder")" = 25 ]; then
                mv "$folder" "$runtime"
                rm -rf "$part"
                return 0
            fi
        done
        say "$1 holds no Java 25: expected a folder with bin/java and release"
    else
        say "could not unpack $1; needed: tar, and xz or python3"
    fi
    rm -rf "$part"
    return 1
}

# Small systems have no xz for tar to call; Python brings its own.
unpack() {
    if ! command -v xz >/dev/null && command -v python3 >/dev/null; then
        python3 -W ignore -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$1" "$2"
    else
        tar -xof "$1" -C "$2"
    fi
}

list_jars() { jars=("$home"/lib/*.jar); }

prepare() {
    [ -z "${WEFT_SKIP_BUILD:-}" ] || return 0
    if archive_outdated && [ -w "$home" ] && mkdir -p "$build"; then
        one_at_a_time write_archive
    fi
}

pack() {
    say "'weft dist' needs a clone: run ./weft dist there"
    exit 2
}

# The GPU tests; at the end what was skipped, and the totals. Fails where a test failed or none ran.
run_tests() {
    local code=0 colors= tests=$home/tests
    if [ "$*" != --gpu ]; then
        say "test${*:+ $*}: a packed folder has the GPU tests alone, expected ./weft test --gpu"
        exit 2
    fi
    [ -t 1 ] || colors=--disable-ansi-colors
    prepare
    java_command "$tests"/*.jar
    # Not local: removed when the launcher ends, however it ends.
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/weft-test-XXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    # Unquoted on purpose: several options in one variable, and none in the other.
    # shellcheck disable=SC2086
    "${java[@]}" "-Dweft.home=$home" -ea "-Djava.io.tmpdir=$scratch" ${WEFT_JAVA_OPTS:-} \
        org.junit.platform.console.ConsoleLauncher execute --disable-banner --details-theme=ascii $colors \
        --include-engine=junit-jupiter --include-tag=gpu --exclude-tag=long --include-classname='.*(Test|IT)' \
        "--scan-class-path=$tests/weft-tests.jar:$tests/weft-cli-tests.jar:$tests/weft-compat-tests.jar" \
        "--reports-dir=$scratch/reports" || code=1
    awk -f "$home/scripts/summary.awk" "$scratch"/reports/TEST-*.xml </dev/null || code=1
    return $code
}
