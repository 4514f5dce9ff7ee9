package dev.weft.cli.launch;

import dev.weft.cli.Main;

/** Runs a command in a JVM that has already been told to end, and prints its exit code. */
final class WhileEnding {

    private WhileEnding() {}

    public static void main(String[] arguments) {
        Runtime.getRuntime()
                .addShutdownHook(
                        new Thread(
                                () ->
                                        System.out.println(
                                                Main.execute(
                                                        Main.commandLine(arguments), arguments))));
    }
}
