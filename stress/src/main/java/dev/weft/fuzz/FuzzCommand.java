package dev.weft.fuzz;

import dev.weft.fabric.memory.ShmJob;
import dev.weft.files.Folders;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.function.LongPredicate;
import java.util.logging.Level;
import java.util.logging.Logger;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code weft fuzz}: damaged input for every reader of outside bytes. */
@Command(
        name = "fuzz",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description =
                "Feeds damaged input to every reader of files, records, options and environment:"
                        + " each input is read, or refused in one line, for a price that its size"
                        + " can justify. Calls machine code with random tiles likewise.",
        footer = {
            "",
            "Examples:",
            "  ./weft fuzz                                  all targets, 60 seconds",
            "  ./weft fuzz --seconds 600 --keep found       keeps inputs that are findings",
            "  ./weft fuzz --target npy --input found/npy-1 shows again what one of them does",
            "",
            "Exit codes: 0 nothing found, 1 findings, 2 wrong usage."
        })
public final class FuzzCommand implements Callable<Integer> {

    @Spec private CommandSpec spec;

    @Option(
            names = "--seconds",
            paramLabel = "S",
            defaultValue = "60",
            description = "For all targets together (default: ${DEFAULT-VALUE}).")
    private int seconds;

    @Option(
            names = "--target",
            paramLabel = "NAME",
            split = ",",
            description = "These targets alone (default: all).")
    private List<String> wanted = List.of();

    @Option(
            names = "--seed",
            paramLabel = "SEED",
            description = "Of the random damage (default: another one each time).")
    private Long seed;

    @Option(names = "--smoke", description = "A fixed, small number of inputs for each target.")
    private boolean smoke;

    @Option(
            names = "--keep",
            paramLabel = "FOLDER",
            description = "Keep inputs that are findings there.")
    private Path keep;

    @Option(
            names = "--input",
            paramLabel = "FILE",
            description = "Read this one input, with the --target that it is for.")
    private Path input;

    /** Held, since a logger that nobody holds forgets its level. */
    private static final Logger LOGGER = Logger.getLogger("dev.weft");

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (seconds < 1 || seconds > 1_000_000) {
            throw wrong("--seconds " + seconds + ": expected 1 to 1000000");
        }
        if (input != null && (wanted.size() != 1 || !Files.isRegularFile(input))) {
            throw wrong("--input " + input + ": expected a file, and its --target");
        }
        if (keep != null) {
            Files.createDirectories(keep);
        }
        // Some readers pass over what they cannot read and say so, each time.
        LOGGER.setLevel(Level.OFF);
        // In memory: a disk would be most of the time that an input takes.
        Path folder = Files.createTempDirectory(ShmJob.sharedMemory(), "weft-fuzz-");
        try (Targets all = new Targets(folder)) {
            List<Target> targets = chosen(all.all());
            return input == null ? fuzz(targets) : replay(targets.getFirst());
        } finally {
            Folders.delete(folder);
        }
    }

    private ParameterException wrong(String message) {
        return new ParameterException(spec.commandLine(), message);
    }

    private List<Target> chosen(List<Target> all) {
        List<String> names = all.stream().map(Target::name).toList();
        for (String name : wanted) {
            if (!names.contains(name)) {
                throw wrong("--target '" + name + "': expected one of " + String.join(", ", names));
            }
        }
        return all.stream()
                .filter(target -> wanted.isEmpty() || wanted.contains(target.name()))
                .toList();
    }

    private int fuzz(List<Target> targets) throws IOException, InterruptedException {
        long chosenSeed = seed == null ? System.nanoTime() & 0xFFFF_FFFFL : seed;
        PrintWriter out = spec.commandLine().getOut();
        out.println("seed " + chosenSeed);
        out.println(line("target", "inputs", "accepted", "refused", "seconds", "findings"));
        List<Fuzzer.Finding> findings = new ArrayList<>();
        long inputs = 0;
        long endNs = System.nanoTime() + seconds * 1_000_000_000L;
        for (int i = 0; i < targets.size(); i++) {
            // What is left is shared by those that are left: a slow one takes nothing from them.
            long now = System.nanoTime();
            long untilNs = now + (endNs - now) / (targets.size() - i);
            Target target = targets.get(i);
            LongPredicate more =
                    smoke
                            ? done -> done < target.smokeInputs()
                            : done -> System.nanoTime() < untilNs;
            Fuzzer.Result result = Fuzzer.run(target, chosenSeed, more);
            out.println(line(result));
            out.flush();
            inputs += result.inputs();
            findings.addAll(result.findings());
        }
        tell(findings);
        out.println(inputs + " inputs, " + findings.size() + " findings");
        out.flush();
        return findings.isEmpty() ? 0 : 1;
    }

    private void tell(List<Fuzzer.Finding> findings) throws IOException {
        PrintWriter err = spec.commandLine().getErr();
        for (int i = 0; i < findings.size(); i++) {
            Fuzzer.Finding finding = findings.get(i);
            String kept = "";
            if (keep != null) {
                Path file = keep.resolve(finding.target() + "-" + (i + 1));
                Files.write(file, finding.input());
                kept = " (" + file + ")";
            }
            err.println(finding.target() + ": " + finding.problem() + kept);
        }
        err.flush();
    }

    private int replay(Target target) throws IOException {
        byte[] bytes = Files.readAllBytes(input);
        new Oracle(false).judge(target, target.seeds().getFirst());
        Verdict verdict = new Oracle(true).judge(target, bytes);
        PrintWriter out = spec.commandLine().getOut();
        String outcome = verdict.accepted() ? "accepted" : "refused";
        out.println(verdict.isFinding() ? "finding: " + verdict.problem() : outcome);
        out.println(verdict.trail());
        out.flush();
        return verdict.isFinding() ? 1 : 0;
    }

    private static String line(Fuzzer.Result result) {
        return line(
                result.target(),
                result.inputs(),
                result.accepted(),
                result.refused(),
                String.format(Locale.ROOT, "%.1f", result.seconds()),
                result.findings().size());
    }

    private static String line(Object... cells) {
        return String.format(Locale.ROOT, "%-18s%10s%10s%10s%9s%10s", cells);
    }
}
