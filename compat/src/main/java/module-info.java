/**
 * The calls of five other systems on Weft's operators, and commands for them.
 *
 * <p>Programs use {@link dev.weft.compat}, which needs the library alone. The commands are for the
 * class path of {@code weft}, where it finds them as services: declared here, they would make every
 * program that makes the calls need the command.
 */
module dev.weft.compat {
    requires transitive dev.weft;
    requires static com.fasterxml.jackson.core;
    requires static dev.weft.cli;
    requires static info.picocli;

    exports dev.weft.compat;
}
