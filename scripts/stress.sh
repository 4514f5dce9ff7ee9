# The commands that try Weft's patience: soak, faults, stragglers, fuzz, prove. Built on their first use. Sourced;
# expects $home, $build and $jdk, and the launcher's build.

# Sets stress_jar. The file stress beside the other jars names it: a later build makes another.
find_stress() {
    local name=none
    if [ -r "$app/stress" ]; then read -r name <"$app/stress" || true; fi
    stress_jar=$app/$name
    # Beside what Maven has left.
    if [ "$app" = "$home/cli/target" ]; then stress_jar=$home/stress/target/classes; fi
}

stress_outdated() {
    find_stress
    [ ! -f "$stress_jar" ] ||
        [ -n "$(find "$home/stress/pom.xml" "$home/stress/src/main" -newer "$app/stress" | head -n 1)" ]
}

# Asks again, because another launcher may have built while this one waited.
build_stress() {
    local name
    stress_outdated || return 0
    require_maven
    say "building the stress commands..."
    # Older than every source that is edited while the build runs.
    touch "$build/stress.begun"
    if ! maven -q -Dweft.quick -Dmaven.test.skip -pl stress -am compile >"$build/stress.log" 2>&1; then
        tail -n 40 "$build/stress.log" >&2
        say "the build failed; all of its output is in $build/stress.log"
        exit 1
    fi
    # A folder on the class path would rule out the AOT cache.
    name=weft-stress-$(date +%s)-$$.jar
    "$jdk/bin/jar" --create --file "$app/$name" -C "$home/stress/target/classes" .
    echo "$name" >"$app/stress.next"
    touch -r "$build/stress.begun" "$app/stress.next"
    mv "$app/stress.next" "$app/stress"
}

run_stress() {
    prepare
    if [ -z "${WEFT_SKIP_BUILD:-}" ] && stress_outdated; then
        one_at_a_time build_stress
    fi
    find_stress
    [ -e "$stress_jar" ] ||
        refuse "WEFT_SKIP_BUILD is set, and the stress commands are not built yet: run ./weft $1 once without it"
    java_command "$stress_jar"
    # Unquoted on purpose: several options in one variable.
    # shellcheck disable=SC2086
    exec "${java[@]}" "-Dweft.home=$home" ${WEFT_JAVA_OPTS:-} dev.weft.stress.Main "$@"
}
