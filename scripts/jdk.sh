# weft java and weft javac: programs of your own, with the Java that runs Weft and with Weft on the class path. Sourced;
# expects $home and $jdk.

run_jdk() {
    local program=$1
    shift
    [ -x "$jdk/bin/$program" ] || refuse "'weft $program' needs a JDK 25: $jdk has no $program"
    prepare
    split_class_path "$program" "$@"
    weft_class_path
    set -- -cp "$own:$class_path" ${words[@]+"${words[@]}"}
    if [ "$program" = java ]; then
        # WEFT_JAVA_OPTS is unquoted on purpose: several options in one variable.
        # shellcheck disable=SC2086
        set -- --enable-native-access=ALL-UNNAMED ${WEFT_JAVA_OPTS:-} "$@"
        # Ready kernels, where there are any.
        [ ! -d "$home/kernels" ] || set -- "-Dweft.cuda.kernels=$home/kernels" "$@"
    fi
    exec "$jdk/bin/$program" "$@"
}

# Of the arguments of program $1: sets own to the user's class path, as Java would choose it, and words to all the others.
split_class_path() {
    local program=$1
    shift
    own=${CLASSPATH:-.}
    words=()
    while [ $# -gt 0 ]; do
        case $1 in
            -cp | -classpath | --class-path)
                [ $# -gt 1 ] || refuse "$1 of 'weft $program' needs a class path after it"
                own=$2
                shift
                ;;
            --class-path=*) own=${1#*=} ;;
            -p | --module-path | --upgrade-module-path | --add-modules | --limit-modules | --add-exports | \
                --add-opens | --add-reads | --patch-module | --enable-native-access | --source)
                # The next word is its value.
                words+=("${@:1:2}")
                [ $# -eq 1 ] || shift
                ;;
            -jar | -m | --module | [!-@]*)
                if [ "$program" = java ]; then
                    # What follows is the program's.
                    words+=("$@")
                    return
                fi
                words+=("$1")
                ;;
            *) words+=("$1") ;;
        esac
        shift
    done
}
