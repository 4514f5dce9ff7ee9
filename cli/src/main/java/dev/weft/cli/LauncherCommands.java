package dev.weft.cli;

import dev.weft.cli.console.UsageException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import picocli.CommandLine.Unmatched;

/** The commands that a clone's launcher runs itself; they are here for help and completion. */
final class LauncherCommands {

    private LauncherCommands() {}

    /** Says that the command needs a clone. */
    abstract static class InClone implements Runnable {

        @Spec CommandSpec spec;

        /** What the command needs. */
        String place() {
            return "a clone";
        }

        @Override
        public void run() {
            throw new UsageException(
                    "'weft %s' needs %s: run ./weft %s there", spec.name(), place(), spec.name());
        }
    }

    /** A command whose options only the launcher knows. */
    abstract static class Unparsed extends InClone {

        @Unmatched String[] arguments;
    }

    @Command(
            name = "lab",
            description =
                    "Makes several hosts on this machine, with links whose rate is set, and runs a"
                            + " command there; needs root (./weft lab --help).")
    static final class Lab extends Unparsed {}

    /** In a clone or a packed folder. */
    abstract static class Program extends Unparsed {

        @Override
        String place() {
            return "a clone or a packed folder";
        }
    }

    @Command(
            name = "java",
            description =
                    "Runs a program of yours with the Java 25 that runs Weft, with Weft on the class"
                            + " path and with native access. The arguments are those of java; a"
                            + " class path among them is added to Weft's.",
            footer = {
                "",
                "Examples:",
                "  ./weft java examples/first/First.java",
                "  ./weft java -cp classes your.Main",
                "  ./weft launch -n 4 -- ./weft java examples/first/First.java",
                "  mpirun -n 4 ./weft java examples/first/First.java"
            })
    static final class Java extends Program {}

    @Command(
            name = "javac",
            description =
                    "Compiles with the JDK 25 that runs Weft and with Weft on the class path. The"
                            + " arguments are those of javac; a class path among them is added to"
                            + " Weft's.",
            footer = {"", "Example:", "  ./weft javac -d classes Main.java"})
    static final class Javac extends Program {}

    @Command(
            name = "install",
            mixinStandardHelpOptions = true,
            description =
                    "Installs the library (jar, sources and Javadoc) into the local Maven"
                            + " repository, for programs of your own. Options that begin with -D are"
                            + " passed to Maven. Only in a clone.",
            footer = {
                "",
                "Examples:",
                "  ./weft install",
                "  ./weft install -Dmaven.repo.local=DIR     into another repository"
            })
    static final class Install extends Unparsed {}

    @Command(
            name = "test",
            mixinStandardHelpOptions = true,
            description =
                    "Builds Weft and runs its tests, in a clone of the repository. In a"
                            + " folder that 'weft dist' packed, nothing is built, and only --gpu is"
                            + " available.",
            footer = {
                "",
                "Examples:",
                "  ./weft test                  what this machine can run; the rest is skipped visibly",
                "  ./weft test --gpu            only the tests of the GPU",
                "  ./weft test --with-extras    first installs MPI, OpenBLAS and Chromium (Debian)",
                "  ./weft test --all            also the long tests: over an hour"
            })
    static final class Test extends InClone {

        @Option(names = "--gpu", description = "Only the tests that need a GPU.")
        boolean gpu;

        @Option(names = "--with-extras", description = "Install optional parts first.")
        boolean withExtras;

        @Option(names = "--all", description = "Also run the long tests.")
        boolean all;

        @Override
        String place() {
            return "a clone or a packed folder";
        }
    }

    /**
     * A command of the stress module, which is built when one of them first runs. Its help is kept
     * here as text, so that reading it needs no build; a test of that module compares the two.
     */
    abstract static class Stress extends Unparsed {

        @Option(
                names = {"-h", "--help"},
                usageHelp = true,
                description = "Show this help message and exit.")
        boolean help;

        /** Shows the text in place of what picocli would write. */
        static void showKeptHelp(CommandLine command) {
            command.setHelpSectionKeys(List.of("text"));
            command.getHelpSectionMap().put("text", help -> keptHelp(command.getCommandName()));
        }

        private static String keptHelp(String name) {
            try (InputStream text =
                    LauncherCommands.class.getResourceAsStream("help/" + name + ".txt")) {
                return new String(text.readAllBytes(), StandardCharsets.UTF_8);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    @Command(
            name = "soak",
            description = "Random problems, launchers and faults, for as long as wanted.")
    static final class Soak extends Stress {}

    @Command(
            name = "faults",
            description = "Every fault in every phase on every fabric, and its outcome.")
    static final class Faults extends Stress {}

    @Command(
            name = "stragglers",
            description = "Thousands of calls by ranks that are late at random.")
    static final class Stragglers extends Stress {}

    @Command(name = "fuzz", description = "Broken files, records and variables for every reader.")
    static final class Fuzz extends Stress {}

    @Command(name = "prove", description = "All states of the progress protocol, for small groups.")
    static final class Prove extends Stress {}

    @Command(
            name = "dist",
            mixinStandardHelpOptions = true,
            sortOptions = false,
            description =
                    "Packs Weft for a host without Java or Maven into one folder under"
                            + " 48 MiB: command, jars, the GPU tests, compiled GPU kernels if nvcc"
                            + " is found (WEFT_NVCC=FILE names one, WEFT_NVCC= none), and a Java"
                            + " runtime. Copy the folder there and run its ./weft. Only in a"
                            + " clone.",
            footer = {
                "",
                "Examples:",
                "  ./weft dist --runtime jre25-linux-x86_64.tar.xz",
                "  ./weft dist --out /tmp/weft          the host has a Java 25",
                "There:",
                "  ./weft run -r cuda",
                "  ./weft test --gpu"
            })
    static final class Dist extends InClone {

        @Option(
                names = "--out",
                paramLabel = "DIR",
                description = "The folder; an earlier one is replaced (default: build/dist).")
        Path out;

        @Option(
                names = "--runtime",
                paramLabel = "FILE",
                description =
                        "A Java 25 for the host: a folder with bin/java, or a .tar.xz or .tar.gz of"
                                + " one, which is unpacked at first use (default: none; the host must"
                                + " have a Java 25).")
        Path runtime;
    }
}
