# The commands that try Weft's patience: soak, faults, stragglers, fuzz, prove. Built on their first use. Sourced;
# expects $home, $build and $jdk, and the launcher's build.

stress_stamp=$build/stress-stamp
stress_jar=$build/weft-stress.jar

stress_outdated() {
    [ ! -f "$stress_stamp" ] || [ ! -f "$stress_jar" ] || [ "$stamp" -nt "$stress_stamp" ] ||
        [ -n "$(find "$home/stress/pom.xml" "$home/stress/src/main" -newer "$stress_stamp" | head -n 1)" ]
}

# Asks again, because another launcher may have built while this one waited.
build_stress() {
    stress_outdated || return 0
    require_maven
    say "building the stress commands..."
    touch "$stress_stamp.next"
    if ! maven -q -Dweft.quick -Dmaven.test.skip -pl stress -am compile >"$build/stress.log" 2>&1; then
        tail -n 40 "$build/stress.log" >&2
        say "the build failed; all of its output is in $build/stress.log"
        exit 1
    fi
    # A folder on the class path would rule out the class data archive.
    "$jdk/bin/jar" --create --file "$stress_jar" -C "$home/stress/target/classes" .
    mv "$stress_stamp.next" "$stress_stamp"
}

run_stress() {
    prepare
    if [ -z "${WEFT_SKIP_BUILD:-}" ] && stress_outdated; then
        one_at_a_time build_stress
    fi
    java_command "$stress_jar"
    # Unquoted on purpose: several options in one variable.
    # shellcheck disable=SC2086
    exec "${java[@]}" "-Dweft.home=$home" ${WEFT_JAVA_OPTS:-} dev.weft.stress.Main "$@"
}
