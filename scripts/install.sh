# weft install: library and compat into the local Maven repository, for programs of your own. Sourced; expects $home, $build and
# $jdk, and the launcher's build.

# $@ is Maven's.
install_library() {
    local word
    for word in "$@"; do
        case $word in
            -D*) ;;
            *) refuse "unknown option $word of install: expected -Dmaven.repo.local=DIR, or another -D of Maven" ;;
        esac
    done
    require_maven
    mkdir -p "$build"
    one_at_a_time install_now "$@"
}

# As a release, but without its bill of materials, and not deployed.
install_now() {
    local jar
    if ! maven -q -Dweft.quick -Prelease -Dmaven.install.skip=false -Dcyclonedx.skip -Dmaven.test.skip "$@" \
        -pl .,bom,library,cli,compat install >"$build/install.log" 2>&1; then
        tail -n 40 "$build/install.log" >&2
        say "the library could not be installed; all of Maven's output is in $build/install.log"
        exit 1
    fi
    for jar in "$home"/{library,compat}/target/weft-*-javadoc.jar; do
        if [ -f "$jar" ]; then
            jar=${jar##*/}
            jar=${jar%-javadoc.jar}
            echo "installed dev.weft:${jar%-*}:${jar##*-}, with sources and Javadoc, in the local Maven repository"
        fi
    done
}
