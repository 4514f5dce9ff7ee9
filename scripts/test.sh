# weft test: the whole build with all tests, or those of the GPU alone, and at the end what was skipped and the totals.
# Sourced; expects $home and $jdk. Writes inside the clone only, besides Maven's cache and, with extras, Debian
# packages.

extras="openmpi-bin libopenmpi-dev mpich chromium libopenblas0-pthread python3-pandas"

run_tests() {
    local with_extras=false all=false gpu=false word code=0
    for word in "$@"; do
        case $word in
            --with-extras) with_extras=true ;;
            --all) all=true ;;
            --gpu) gpu=true ;;
            *)
                say "unknown option $word of test: expected --gpu, --with-extras or --all"
                exit 2
                ;;
        esac
    done
    require_maven
    if $with_extras; then
        install_extras
    fi
    set --
    if $all; then
        set -- -Dweft.excludedGroups=
    fi
    if $gpu; then
        # What earlier runs of all tests reported must not count.
        rm -rf "$home"/*/target/surefire-reports* "$home"/*/target/failsafe-reports*
        test_all -Dweft.quick -Dgroups=gpu "$@" -pl library,cli,compat verify || code=1
        summary || code=1
        return $code
    fi
    if models_available; then
        set -- "$@" -Pmodels
    fi
    # clean: a class that the launcher compiled went without the checks.
    test_all "$@" clean verify || code=1
    prove_smoke || code=1
    stress $all || code=1
    summary || code=1
    return $code
}

# A failed test does not keep the tests of later modules from running; the summary fails for it. A build that fails, or a
# JVM of tests that crashes, still fails here.
test_all() {
    maven -fae -Dmaven.test.failure.ignore=true "$@"
}

# The examples with real models have dependencies of over 100 MB that no other part needs.
models_available() {
    local examples=examples/encoder,examples/service,examples/llm
    mkdir -p "$home/build"
    if ! maven -q -Pmodels -Dweft.modelOnly -pl $examples dependency:resolve >"$home/build/models.log" 2>&1; then
        say "skipped: $examples, because Maven cannot resolve their dependencies (build/models.log)"
        return 1
    fi
}

install_extras() {
    local missing="" package as_root=""
    for package in $extras; do
        if ! dpkg -s "$package" >/dev/null 2>&1; then
            missing="$missing $package"
        fi
    done
    # A peer of weft bench; ONNX Runtime, another one, comes with the tests of the encoder.
    if ! maven -q dependency:get -Dtransitive=false -Dartifact=de.kherud:llama:4.2.0 >/dev/null 2>&1; then
        say "could not fetch llama.cpp: weft bench is tested without it"
    fi
    if ! "$home/examples/llm/fetch.sh" stories15m; then
        say "examples/llm is not tested"
    fi
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        as_root="sudo -n"
    fi
    if ! command -v apt-get >/dev/null || ! $as_root true 2>/dev/null; then
        say "cannot install$missing (needs apt-get and root): tests that use them are skipped"
        return 0
    fi
    echo "installing$missing"
    mkdir -p "$home/build"
    # Both unquoted on purpose: several words each.
    # shellcheck disable=SC2086
    if ! { $as_root apt-get -qq update &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing; } \
        >"$home/build/extras.log" 2>&1; then
        tail -n 5 "$home/build/extras.log" >&2
        say "could not install$missing: tests that use them are skipped"
    fi
}

# The command as users run it, from what Maven has just made.
prove_smoke() {
    [ -d "$home/stress/target/classes" ] || return 0
    echo "+ ./weft prove --smoke"
    WEFT_SKIP_BUILD=1 WEFT_APP=$home/cli/target "$home/weft" prove --smoke
}

# The memory-order tests: one Java configuration of each, or many with --all, which takes over half an hour.
stress() {
    local folder=$home/stress/target options="-m quick -iters 1 -sc false -jvmArgs --enable-native-access=ALL-UNNAMED" code=0
    [ -f "$folder/jcstress.jar" ] || return 0
    if $1; then
        options="-m default -fsm 1"
    fi
    echo "memory-order tests: jcstress $options, log in $folder/jcstress.log"
    # shellcheck disable=SC2086
    (cd "$folder" && "$jdk/bin/java" "-Djava.io.tmpdir=$folder" -jar jcstress.jar -r jcstress $options) \
        >"$folder/jcstress.log" 2>&1 || code=1
    if [ $code -ne 0 ]; then
        tail -n 40 "$folder/jcstress.log"
    fi
    grep '^(Results' "$folder/jcstress.log" | tail -n 1
    return $code
}

# Lists skipped tests with their reasons and failed tests, and ends with the totals of all reports; fails where a test
# failed.
summary() {
    local reports=() file
    for file in "$home"/{*,examples/*}/target/{surefire,failsafe}-reports*/TEST-*.xml; do
        if [ -f "$file" ]; then
            reports+=("$file")
        fi
    done
    awk -f "$home/scripts/summary.awk" ${reports[@]+"${reports[@]}"} </dev/null
}
