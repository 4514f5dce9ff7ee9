# weft install: the library into the local Maven repository, for programs of your own. Sourced; expects $home, $build and
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
        -pl .,bom,library install >"$build/install.log" 2>&1; then
        tail -n 40 "$build/install.log" >&2
        say "the library could not be installed; all of Maven's output is in $build/install.log"
        exit 1
    fi
    for jar in "$home"/library/target/weft-*-javadoc.jar; do
        jar=${jar##*/weft-}
        echo "installed dev.weft:weft:${jar%-javadoc.jar}, with sources and Javadoc, in the local Maven repository"
    done
}
