/** The command {@code weft}; open, because picocli sets the fields of commands. */
open module dev.weft.cli {
    requires dev.weft;
    requires com.fasterxml.jackson.core;
    requires info.picocli;
    requires jdk.httpserver;
    requires java.management;
    requires jdk.management;

    // The class path's other jars add commands.
    uses dev.weft.cli.AddOnCommand;

    // The source systems' commands measure, report and start ranks as run does.
    exports dev.weft.cli to
            dev.weft.compat;
    exports dev.weft.cli.console to
            dev.weft.compat;
    exports dev.weft.cli.data to
            dev.weft.compat;
    exports dev.weft.cli.launch to
            dev.weft.compat;
    exports dev.weft.cli.message to
            dev.weft.compat;
    exports dev.weft.cli.options to
            dev.weft.compat;
    exports dev.weft.cli.run to
            dev.weft.compat;
    exports dev.weft.cli.simulate to
            dev.weft.compat;
    exports dev.weft.cli.verify to
            dev.weft.compat;
    exports dev.weft.cli.view to
            dev.weft.compat;
    exports dev.weft.report to
            dev.weft.compat;
}
