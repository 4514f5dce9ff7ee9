# Java's AOT cache of loaded and linked classes, which halves the start-up; without one everything works as well. Sourced;
# expects $build and $archive.

# Never written, or the jars are newer.
archive_outdated() {
    local jar
    list_jars
    for jar in "${jars[@]}"; do
        [ "$jar" -nt "$archive" ] && return 0
    done
    return 1
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

# From one small run. Asks again, because another launcher may have written it while this one waited.
write_archive() {
    local data=$build/archive-run
    archive_outdated || return 0
    rm -f "$archive"
    java_command
    # No record of how often what was called: Java would compile all of that at the next start, while two cores have
    # better things to do.
    if ! { "${java[@]}" -XX:+UnlockDiagnosticVMOptions -XX:-AOTRecordTraining "-XX:AOTCacheOutput=$archive.next" \
        dev.weft.cli.Main run --gm 32 --gk 32 --gn 32 --warmup 1 --iterations 1 --data-dir "$data" &&
        mv "$archive.next" "$archive"; } >"$build/archive.log" 2>&1; then
        # An empty one is not used, and says that there is nothing to try again.
        : >"$archive"
    fi
    rm -rf "$data"
}
