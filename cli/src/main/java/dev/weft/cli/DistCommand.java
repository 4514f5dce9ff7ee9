package dev.weft.cli;

import dev.weft.cli.console.UsageException;
import java.nio.file.Path;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * {@code weft dist} is answered by the launcher; this one exists so that help and completion know
 * it.
 */
@Command(
        name = "dist",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description =
                "Packs Weft for a host without Java or Maven into one folder under 48 MiB: command,"
                        + " jars, the GPU tests, ready GPU kernels where nvcc is found"
                        + " (WEFT_NVCC=FILE names one, WEFT_NVCC= none), and a Java runtime. Copy"
                        + " the folder there and run its ./weft. Only in a clone.",
        footer = {
            "",
            "Examples:",
            "  ./weft dist --runtime jre25-linux-x86_64.tar.xz",
            "  ./weft dist --out /tmp/weft          the host has a Java 25",
            "There:",
            "  ./weft run -r cuda",
            "  ./weft test --gpu"
        })
final class DistCommand implements Runnable {

    @Option(
            names = "--out",
            paramLabel = "DIR",
            description = "The folder; one packed before is replaced (default: build/dist).")
    Path out;

    @Option(
            names = "--runtime",
            paramLabel = "FILE",
            description =
                    "A Java 25 for the host: a folder with bin/java, or a .tar.xz or .tar.gz of"
                            + " one, which is unpacked at first use (default: none; the host must"
                            + " have a Java 25).")
    Path runtime;

    @Override
    public void run() {
        throw new UsageException("'weft dist' needs a clone: run ./weft dist there");
    }
}
