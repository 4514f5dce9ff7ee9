# The launcher's own build: library and command line, no tests, no checks. Sourced; expects $home, $build and $jdk.

stamp=$build/stamp

choose_java() { find_java javac; }

list_jars() { jars=("$home"/cli/target/weft-cli-*.jar "$home"/cli/target/lib/*.jar); }

sources_changed() {
    [ -n "$(find "$home"/pom.xml "$home"/library/pom.xml "$home"/cli/pom.xml \
        "$home"/library/src/main "$home"/cli/src/main -newer "$stamp" | head -n 1)" ]
}

jars_missing() {
    local jar
    for jar in "$home"/cli/target/weft-cli-*.jar "$home"/cli/target/lib/weft-*.jar; do
        [ -f "$jar" ] || return 0
    done
    return 1
}

build_needed() { [ ! -f "$stamp" ] || jars_missing || sources_changed; }

# Everything is there and up to date afterwards.
prepare() {
    [ -z "${WEFT_SKIP_BUILD:-}" ] || return 0
    if build_needed || archive_outdated; then
        mkdir -p "$build"
        one_at_a_time build_now
    fi
}

# Asks again, because another launcher may have built while this one waited.
build_now() {
    if build_needed; then
        compile -Dmaven.test.skip
    fi
    write_archive
}

# Writes the jars anew; $@ says what becomes of the tests.
compile() {
    local why="sources changed" code=0
    [ -f "$stamp" ] || why="first use"
    require_maven
    echo "building Weft ($why)..." >&2
    # Older than every source that is edited while the build runs.
    touch "$stamp.next"
    rm -rf "$build"/weft-*.jsa "$home"/cli/target/weft-cli-*.jar "$home"/cli/target/lib
    maven -q -Dweft.quick "$@" -pl cli -am package >"$build/build.log" 2>&1 || code=$?
    if [ $code -ne 0 ]; then
        tail -n 40 "$build/build.log" >&2
        say "the build failed; all of its output is in $build/build.log"
        exit 1
    fi
    mv "$stamp.next" "$stamp"
}
