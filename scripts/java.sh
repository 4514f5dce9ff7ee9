# Which Java runs what. Sourced; needs nothing but bash, and starts no JVM to look at one.

say() { echo "weft: $*" >&2; }

# Wrong usage.
refuse() {
    say "$*"
    exit 2
}

# The major version of the JDK or JRE in folder $1, from its release file; 0 where there is none.
java_major() {
    local line version=0
    if [ -r "$1/release" ]; then
        while IFS= read -r line; do
            case $line in
                JAVA_VERSION=\"*)
                    version=${line#JAVA_VERSION=\"}
                    version=${version%%[!0-9]*}
                    ;;
            esac
        done <"$1/release"
    fi
    echo "${version:-0}"
}

# The home of the java on the PATH; nothing where there is none.
java_home_on_path() {
    local file
    file=$(command -v java) || return 0
    dirname "$(dirname "$(real_file "$file")")"
}

# The home of a Java 25 that has the program $1 (javac: a JDK; java: a runtime will do): what the user chose, then the
# usual folders.
find_java() {
    local folder what="Java 25"
    for folder in "${JAVA_HOME:-}" "$(java_home_on_path)" "${JAVA25_HOME:-}" \
        /usr/lib/jvm/* /usr/java/* /opt/* /opt/java/* "${HOME:-}"/.sdkman/candidates/java/* "${HOME:-}"/.jdks/* \
        /Library/Java/JavaVirtualMachines/*/Contents/Home \
        "${HOME:-}"/Library/Java/JavaVirtualMachines/*/Contents/Home \
        /opt/homebrew/opt/openjdk@25/libexec/openjdk.jdk/Contents/Home \
        /usr/local/opt/openjdk@25/libexec/openjdk.jdk/Contents/Home; do
        if [ -x "$folder/bin/$1" ] && [ "$(java_major "$folder")" = 25 ]; then
            echo "$folder"
            return 0
        fi
    done
    [ "$1" = java ] || what="JDK 25"
    say "no $what found; install one or set JAVA_HOME to it:
  Debian, Ubuntu   apt-get install openjdk-25-jdk (or a Temurin 25)
  macOS            brew install openjdk@25
  any, by sdkman   sdk install java 25-tem"
    return 2
}

# Java itself passes over an entry that does not exist, and the class in it is then missing for no visible reason.
check_class_path() {
    local entries=() entry
    IFS=: read -ra entries <<<"${WEFT_CLASSPATH:-}"
    for entry in ${entries[@]+"${entries[@]}"}; do
        # An entry may end in /*: all jars of a folder.
        [ -z "$entry" ] || [ -e "${entry%/\*}" ] ||
            refuse "WEFT_CLASSPATH names $entry, which does not exist: expected jars or folders, with ':' between them"
    done
}

# Sets class_path: Weft's jars, the further jars $@, and what the user adds.
weft_class_path() {
    local jar
    list_jars
    class_path=
    for jar in "${jars[@]}" "$@"; do
        class_path=$class_path${class_path:+:}$jar
    done
    class_path=$class_path${WEFT_CLASSPATH:+:$WEFT_CLASSPATH}
}

# Sets the array java to the command that starts any class of Weft, or of the further jars $@. Expects $home, $jdk and
# $archive.
java_command() {
    weft_class_path "$@"
    # The serial collector: many ranks share a machine, and a steady call allocates nothing.
    java=("$jdk/bin/java"
        --enable-native-access=ALL-UNNAMED
        -XX:+UseSerialGC -XX:-UsePerfData -XX:+DisplayVMOutputToStderr
        -Xlog:disable "-Xlog:all=error,cds*=off,aot*=off:stderr")
    if [ -s "$archive" ]; then
        java+=("-XX:AOTCache=$archive")
    fi
    # Ready kernels, where there are any.
    if [ -d "$home/kernels" ]; then
        java+=("-Dweft.cuda.kernels=$home/kernels")
    fi
    java+=(-cp "$class_path")
}

# With little memory or few processes Java may not start, and hardly says why: where there is such a limit, tries it first.
# Expects the array java.
check_limits() {
    local code=0 told pids=max
    [ ! -r /sys/fs/cgroup/pids.max ] || read -r pids </sys/fs/cgroup/pids.max || true
    case "$(ulimit -v) $(ulimit -u) $pids" in
        unlimited\ [0-9][0-9][0-9][0-9]*\ max | unlimited\ [0-9][0-9][0-9][0-9]*\ [0-9][0-9][0-9][0-9]*) return 0 ;;
        unlimited\ unlimited\ max | unlimited\ unlimited\ [0-9][0-9][0-9][0-9]*) return 0 ;;
    esac
    # Unquoted on purpose, as in weft.
    # shellcheck disable=SC2086
    told=$("${java[@]}" ${WEFT_JAVA_OPTS:-} -version 2>&1) || code=$?
    if [ $code -ne 0 ]; then
        say "Java cannot start (exit code $code${told:+: ${told##*$'\n'}}): limits are $(ulimit -v) KiB of memory" \
            "(ulimit -v), $(ulimit -u) processes (ulimit -u), $pids processes of the cgroup (pids.max)"
        exit 1
    fi
}

require_maven() {
    if ! command -v mvn >/dev/null; then
        say "no Maven found, which the build needs; install it:
  Debian, Ubuntu   apt-get install maven
  macOS            brew install maven
  any, by sdkman   sdk install maven"
        exit 2
    fi
}

# Runs Maven on the Java that the machine would take, if that is new enough, else on $jdk.
# JAVA25_HOME tells Maven's search for a JDK 25 about ours.
maven() {
    local own=${JAVA_HOME:-$(java_home_on_path)} options=${MAVEN_OPTS:-}
    if [ "$(java_major "$own")" -lt 17 ]; then
        own=$jdk
    fi
    if [ "$(java_major "$own")" -ge 24 ]; then
        # Older Mavens bring libraries about which a new Java warns.
        options="--sun-misc-unsafe-memory-access=allow --enable-native-access=ALL-UNNAMED $options"
    fi
    # Temporary files of the build stay in the clone; MAVEN_OPTS has no way to hold a path with blanks.
    case $home in
        *[[:blank:]]*) ;;
        *) mkdir -p "$home/build/tmp" && options="-Djava.io.tmpdir=$home/build/tmp $options" ;;
    esac
    # The compiler would warn of entries in the user's CLASSPATH that do not exist, and a warning ends the build.
    env -u CLASSPATH JAVA_HOME="$own" JAVA25_HOME="$jdk" MAVEN_OPTS="$options" mvn -B -ntp -f "$home/pom.xml" "$@"
}
