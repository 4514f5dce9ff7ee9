/** The command {@code weft}. */
module dev.weft.cli {
    requires dev.weft;
    requires com.fasterxml.jackson.core;
    requires info.picocli;
    requires java.management;
    requires jdk.management;

    opens dev.weft.cli to
            info.picocli;
}
