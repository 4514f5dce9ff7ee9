# The launcher's own build: library, command line, compat and bench, no tests, no checks. Sourced; expects $home, $build, $jdk and
# $archive. Commands run from a copy of what was built, build/app-*, whose name is in build/current: a later build makes
# another copy, and one that nobody runs from is removed.

stamp=$build/stamp

choose_java() { find_java javac; }

# Sets app, the folder of the jars, and the archive's place in it: the one a rank was told, if it is in this clone, the
# current one, or what Maven has left.
find_app() {
    local name=
    app=
    if [ -n "${WEFT_SKIP_BUILD:-}" ]; then
        app=$(cd "${WEFT_APP:-none}" 2>/dev/null && pwd -P) || true
        case $app in
            "$home"/*) ;;
            *) app= ;;
        esac
    fi
    if [ -z "$app" ] || jars_missing; then
        if [ -r "$build/current" ]; then read -r name <"$build/current" || true; fi
        app=$build/${name:-none}
    fi
    if [ -n "${WEFT_SKIP_BUILD:-}" ] && jars_missing; then app=$home/cli/target; fi
    archive=$app/${archive##*/}
}

list_jars() {
    jars=("$app"/weft-cli-*.jar "$app"/lib/*.jar)
    # What Maven has left lies module by module.
    if [ "$app" = "$home/cli/target" ] && [ -d "$home/compat/target" ]; then
        jars+=("$home"/compat/target/weft-compat-*.jar)
    fi
}

sources_changed() {
    [ -n "$(find "$home"/pom.xml "$home"/{library,cli,compat,bench}/{pom.xml,src/main} \
        -newer "$stamp" | head -n 1)" ]
}

jars_missing() {
    local jar
    for jar in "$app"/weft-cli-*.jar "$app"/lib/weft-*.jar; do
        [ -f "$jar" ] || return 0
    done
    return 1
}

build_needed() { [ ! -f "$stamp" ] || jars_missing || sources_changed; }

# Everything is there and up to date afterwards, and stays until this process, which may become another program, ends.
prepare() {
    find_app
    if [ -z "${WEFT_SKIP_BUILD:-}" ]; then
        if build_needed || archive_outdated; then
            mkdir -p "$build"
            one_at_a_time build_now
            find_app
        fi
        if others_left; then
            one_at_a_time remove_unused
        fi
    fi
    hold_app
    if jars_missing; then refuse "WEFT_SKIP_BUILD is set, and nothing is built yet: run ./weft once without it"; fi
    # The ranks that a command starts run from the same copy.
    export WEFT_APP=$app
}

# Asks again, because another launcher may have built while this one waited.
build_now() {
    find_app
    if build_needed; then
        compile -Dmaven.test.skip
    fi
    write_archive
}

# Builds the jars anew; $@ says what becomes of the tests.
compile() {
    local why="sources changed" code=0
    [ -f "$stamp" ] || why="first use"
    require_maven
    echo "building Weft ($why)..." >&2
    # Older than every source that is edited while the build runs.
    touch "$stamp.next"
    rm -rf "$home"/{cli,compat,bench}/target/weft-*.jar "$home"/cli/target/lib
    maven -q -Dweft.quick "$@" -pl bench -am package >"$build/build.log" 2>&1 || code=$?
    if [ $code -ne 0 ]; then
        tail -n 40 "$build/build.log" >&2
        say "the build failed; all of its output is in $build/build.log"
        exit 1
    fi
    copy_jars
    mv "$stamp.next" "$stamp"
}

# Not links: Maven may write into the files that it has made.
copy_jars() {
    local name old
    name=app-$(date +%s)-$$
    rm -rf "$build/next"
    mkdir "$build/next"
    cp "$home"/cli/target/weft-cli-*.jar "$build/next"
    cp -R "$home/cli/target/lib" "$build/next/lib"
    cp "$home"/compat/target/weft-compat-*.jar "$home"/bench/target/weft-bench-*.jar "$build/next/lib"
    for old in "$build"/next/lib/picocli-*.jar; do
        # As it is, it only takes longer to load.
        { "$jdk/bin/java" "$home/scripts/NewerClasses.java" "$old" "$old.next" && mv "$old.next" "$old"; } \
            >>"$build/build.log" 2>&1 || rm -f "$old.next"
    done
    : >"$build/next/lock"
    mv "$build/next" "$build/$name"
    echo "$name" >"$build/current.next"
    mv "$build/current.next" "$build/current"
    find_app
}

# A lock on the folder for as long as this process lives; descriptor 8 stays open in the program that takes its place.
hold_app() {
    local tries=0
    command -v flock >/dev/null || return 0
    while [ $tries -lt 10 ]; do
        if { exec 8<"$app/lock"; } 2>/dev/null; then
            # Some file systems have no locks, and run without.
            flock -s 8 2>/dev/null || return 0
            [ ! -f "$app/lock" ] || return 0
        elif ! jars_missing; then
            return 0
        fi
        # Removed meanwhile: there is another.
        find_app
        tries=$((tries + 1))
    done
}

others_left() {
    local folder
    for folder in "$build"/app-*; do
        [ ! -d "$folder" ] || [ "$folder" = "$app" ] || return 0
    done
    return 1
}

# Removes the copies that nobody runs from; where there are no locks to tell, all but the latest few.
remove_unused() {
    local name kept=0
    find_app
    # Newest first.
    for name in $(cd "$build" && ls -dt app-*); do
        if [ "$build/$name" != "$app" ]; then
            kept=$((kept + 1))
            if command -v flock >/dev/null; then
                (flock -n 8 && rm -rf "${build:?}/$name") 8>>"$build/$name/lock" || true
            elif [ $kept -gt 3 ]; then
                rm -rf "${build:?}/$name"
            fi
        fi
    done
}
