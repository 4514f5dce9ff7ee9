# The launcher's own build: library and command line, no tests, no checks. Sourced; expects $home and $jdk.

build=$home/build
stamp=$build/stamp

# One class data archive per Java: it fits no other.
archive=$build/weft-$(cksum <"$jdk/release" | tr -d ' ').jsa

# Sets the array java to the command that starts any class of Weft.
java_command() {
    local jar class_path=
    for jar in "$home"/cli/target/weft-cli-*.jar "$home"/cli/target/lib/*.jar; do
        class_path=$class_path${class_path:+:}$jar
    done
    # The serial collector: many ranks share a machine, and a steady call allocates nothing.
    java=("$jdk/bin/java"
        --enable-native-access=ALL-UNNAMED --add-modules jdk.incubator.vector
        -XX:+UseSerialGC -XX:-UsePerfData
        -Xlog:disable "-Xlog:all=error,cds*=off,aot*=off:stderr")
    # The NEON kernel's loop has 1.75 instructions for each multiply-add, unrolled further 1.56. On x86_64 the same flag
    # makes the kernels spill, so they go without.
    case $(uname -m) in
        aarch64 | arm64) java+=(-XX:LoopUnrollLimit=200 -Dweft.kernel.flags=set) ;;
    esac
    if [ -s "$archive" ]; then
        java+=("-XX:SharedArchiveFile=$archive")
    fi
    java+=(-cp "$class_path")
}

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

# Another build, such as that of the tests, has written the jars anew.
archive_outdated() {
    local jar
    for jar in "$home"/cli/target/weft-cli-*.jar "$home"/cli/target/lib/*.jar; do
        [ "$jar" -nt "$archive" ] && return 0
    done
    return 1
}

build_needed() { [ ! -f "$stamp" ] || jars_missing || sources_changed; }

build_if_needed() {
    [ -z "${WEFT_SKIP_BUILD:-}" ] || return 0
    if build_needed || archive_outdated; then
        mkdir -p "$build"
        one_at_a_time build_now
    fi
}

# Runs a command while no other launcher runs one.
one_at_a_time() {
    local waits=0
    if command -v flock >/dev/null; then
        (flock 9 && "$@" 9>&-) 9>"$build/lock"
        return
    fi
    until mkdir "$build/lock.d" 2>/dev/null; do
        waits=$((waits + 1))
        [ $waits -ne 300 ] || say "still waiting for another build; if there is none, remove $build/lock.d"
        sleep 0.2
    done
    (trap 'rmdir "$build/lock.d"' EXIT && "$@")
}

# Asks again, because another launcher may have built while this one waited.
build_now() {
    if build_needed; then
        compile
    fi
    if archive_outdated; then
        write_archive
    fi
}

compile() {
    local why="sources changed" code=0
    [ -f "$stamp" ] || why="first use"
    require_maven
    echo "building Weft ($why)..." >&2
    # Older than every source that is edited while the build runs.
    touch "$stamp.next"
    rm -rf "$build"/weft-*.jsa "$home"/cli/target/weft-cli-*.jar "$home"/cli/target/lib
    maven -q -Dweft.quick -Dmaven.test.skip -pl cli -am package >"$build/build.log" 2>&1 || code=$?
    if [ $code -ne 0 ]; then
        tail -n 40 "$build/build.log" >&2
        say "the build failed; all of its output is in $build/build.log"
        exit 1
    fi
    mv "$stamp.next" "$stamp"
}

# A class data archive from one small run halves the start-up; without one everything works as well.
write_archive() {
    local list=$build/classes.lst data=$build/archive-run
    rm -f "$archive"
    java_command
    if ! { "${java[@]}" "-XX:DumpLoadedClassList=$list" dev.weft.cli.Main run --gm 32 --gk 32 --gn 32 \
        --warmup 1 --iterations 1 --data-dir "$data" &&
        "${java[@]}" -Xshare:dump "-XX:SharedClassListFile=$list" "-XX:SharedArchiveFile=$archive.next" &&
        mv "$archive.next" "$archive"; } >"$build/archive.log" 2>&1; then
        # An empty one is not used, and says that there is nothing to try again.
        : >"$archive"
    fi
    rm -rf "$data" "$list"
}
