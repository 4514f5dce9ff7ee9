# weft dist: everything for a host without Java or Maven, in one folder. Sourced; expects $home, $build and $jdk, and
# the launcher's build. The folder is written beside its place and moved there when it is complete.

limit_mib=48
console=org.junit.platform:junit-platform-console-standalone

pack() {
    local out=$build/dist runtime= nvcc mib
    while [ $# -gt 0 ]; do
        case $1 in
            --out=* | --runtime=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
        esac
        case $1 in
            --out | --runtime)
                [ -n "${2:-}" ] || refuse "option $1 of dist needs a value"
                if [ "$1" = --out ]; then out=${2%/}; else runtime=${2%/}; fi
                shift 2
                ;;
            *) refuse "unknown option $1 of dist: expected --out DIR or --runtime FILE" ;;
        esac
    done
    check_runtime "$runtime"
    check_out "$out"
    # A link stays one.
    if [ -d "$out" ]; then out=$(cd "$out" && pwd -P); fi
    nvcc=${WEFT_NVCC-$(find_nvcc)}

    mkdir -p "$build" "$(dirname "$out")"
    one_at_a_time build_for_dist
    find_app
    hold_app
    # Not local: removed when the launcher ends, however it ends.
    part=$out.part-$$
    trap 'rm -rf "$part"' EXIT
    mkdir "$part"
    pack_command
    pack_tests
    pack_runtime "$runtime"
    pack_kernels "$nvcc"

    mib=$((($(du -sk "$part" | cut -f 1) + 1023) / 1024))
    if [ $mib -ge $limit_mib ]; then
        say "the folder would take $mib MiB: expected under $limit_mib; give a smaller --runtime, as .tar.xz"
        exit 1
    fi
    replace "$out"
    echo "packed $mib MiB into $out"
}

check_runtime() {
    case $1 in
        "") ;;
        *.tar.xz | *.tar.gz)
            [ -f "$1" ] || refuse "--runtime $1: no such file"
            tar -tf "$1" | grep -Eq '^([^/]+/)*bin/java$' || refuse "--runtime $1: holds no bin/java"
            ;;
        *)
            [ -x "$1/bin/java" ] && [ "$(java_major "$1")" = 25 ] ||
                refuse "--runtime $1: expected a folder with the bin/java of a Java 25, or a .tar.xz or .tar.gz of one"
            ;;
    esac
}

# Only what dist has made is ever replaced: a clone has a pom.xml, anything else no packed.sh.
check_out() {
    if [ -e "$1" ] && [ -n "$(ls -A "$1")" ] && { [ ! -f "$1/scripts/packed.sh" ] || [ -e "$1/pom.xml" ]; }; then
        refuse "--out $1: is there, and was not packed by dist; expected a new or an empty folder"
    fi
}

find_nvcc() {
    local file
    for file in "$(command -v nvcc)" "${CUDA_HOME:-}/bin/nvcc" /usr/local/cuda/bin/nvcc; do
        if [ -x "$file" ]; then
            echo "$file"
            return 0
        fi
    done
}

# Jars, test classes, and what runs them where Maven does not.
build_for_dist() {
    find_app
    if [ -z "${WEFT_SKIP_BUILD:-}" ]; then
        compile -DskipTests
        rm -rf "$build/console"
    elif jars_missing; then
        say "nothing is built yet: run ./weft dist without WEFT_SKIP_BUILD"
        exit 1
    fi
    if [ ! -d "$build/console" ]; then
        require_maven
        # Maven, not the shell, knows the version.
        # shellcheck disable=SC2016
        if ! maven -q -N dependency:copy "-Dartifact=$console:"'${junit.version}' \
            "-DoutputDirectory=$build/console" >"$build/console.log" 2>&1; then
            rm -rf "$build/console"
            say "Maven could not get $console; all of its output is in $build/console.log"
            exit 1
        fi
    fi
}

pack_command() {
    list_jars
    mkdir "$part/lib" "$part/scripts"
    cp "${jars[@]}" "$part/lib"
    cp "$home"/scripts/{java.sh,jdk.sh,archive.sh,packed.sh,summary.awk} "$part/scripts"
    cp "$home/weft" "$home/LICENSE" "$part"
}

pack_tests() {
    local module classes
    mkdir "$part/tests"
    cp "$build"/console/*.jar "$part/tests"
    for module in library:weft cli:weft-cli compat:weft-compat; do
        classes=$home/${module%:*}/target/test-classes
        if [ ! -d "$classes" ]; then
            say "no test classes in $classes: run ./weft dist without WEFT_SKIP_BUILD"
            exit 1
        fi
        "$jdk/bin/jar" --create --no-manifest --file "$part/tests/${module#*:}-tests.jar" -C "$classes" .
    done
}

# An archive stays one: unpacked, a runtime takes four times the space.
pack_runtime() {
    [ -n "$1" ] || return 0
    mkdir "$part/runtime"
    if [ -d "$1" ]; then
        # Some systems' runtimes link to files outside.
        cp -RL "$1" "$part/runtime/java"
    else
        cp "$1" "$part/runtime"
    fi
}

pack_kernels() {
    if [ -z "$1" ]; then
        say "no nvcc: packed without ready kernels, the host compiles them at first use and needs NVRTC"
        return 0
    fi
    java_command
    "${java[@]}" dev.weft.cli.Main pack-kernels --out "$part/kernels" --nvcc "$1"
}

# The old folder is there until the new one takes its place.
replace() {
    local old=$1.old-$$
    if [ -e "$1" ]; then mv "$1" "$old"; fi
    if ! mv "$part" "$1"; then
        if [ -e "$old" ]; then mv "$old" "$1"; fi
        say "could not move the folder to $1"
        exit 1
    fi
    rm -rf "$old"
}
