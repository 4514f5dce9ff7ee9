/** The command {@code weft}. */
module dev.weft.cli {
    requires dev.weft;
    requires com.fasterxml.jackson.core;
    requires info.picocli;
    requires jdk.httpserver;
    requires java.management;
    requires jdk.management;

    // Commands and their options.
    opens dev.weft.cli to
            info.picocli;
    opens dev.weft.cli.compat to
            info.picocli;
    opens dev.weft.cli.console to
            info.picocli;
    opens dev.weft.cli.data to
            info.picocli;
    opens dev.weft.cli.launch to
            info.picocli;
    opens dev.weft.cli.options to
            info.picocli;
    opens dev.weft.cli.run to
            info.picocli;
    opens dev.weft.cli.simulate to
            info.picocli;
    opens dev.weft.cli.verify to
            info.picocli;
    opens dev.weft.cli.view to
            info.picocli;

    uses dev.weft.cli.AddOnCommand;
}
