/** The command {@code weft}; open, because picocli sets the fields of commands. */
open module dev.weft.cli {
    requires dev.weft;
    requires com.fasterxml.jackson.core;
    requires info.picocli;
    requires jdk.httpserver;
    requires java.management;
    requires jdk.management;

    uses dev.weft.cli.AddOnCommand;
}
