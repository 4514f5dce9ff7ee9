/** The command {@code weft}. */
module dev.weft.cli {
    requires dev.weft;
    requires com.fasterxml.jackson.core;
    requires info.picocli;
    requires jdk.httpserver;
    requires java.management;
    requires jdk.management;
    // Optional at run time: without it the bench leaves out what the cores could do at most.
    requires static jdk.incubator.vector;

    opens dev.weft.cli to
            info.picocli;
    opens dev.weft.cli.bench to
            info.picocli;
}
