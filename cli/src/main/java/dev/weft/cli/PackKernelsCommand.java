package dev.weft.cli;

import dev.weft.cli.console.ErrorMessage;
import dev.weft.cli.console.RunFailedException;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cuda.kernel.KernelKey;
import dev.weft.cuda.kernel.KernelVariants;
import dev.weft.files.Folders;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Compiles the kernels that {@code weft dist} packs; started by it, not by users. It stops at the
 * first failure: no compiler is left running, and no kernel is half-written.
 */
@Command(
        name = "pack-kernels",
        hidden = true,
        description = "Compiles the kernels that dist carries.")
final class PackKernelsCommand extends WeftCommand {

    private static final int COMPILERS = 2;

    @Option(names = "--out", required = true, paramLabel = "DIR", description = "Where to.")
    Path out;

    @Option(names = "--nvcc", required = true, paramLabel = "FILE", description = "The compiler.")
    Path nvcc;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (!Files.isRegularFile(nvcc) || !Files.isExecutable(nvcc)) {
            throw new UsageException("--nvcc " + nvcc + ": expected a program");
        }
        Map<String, String> sources = KernelVariants.sources();
        Files.createDirectories(out);
        Path work = Files.createTempDirectory(out, "work-");
        try {
            for (Map.Entry<String, String> source : sources.entrySet()) {
                Files.writeString(work.resolve(source.getKey()), source.getValue());
            }
            compileAll(sources, work);
        } finally {
            Folders.delete(work);
        }
        return 0;
    }

    private void compileAll(Map<String, String> sources, Path work) throws InterruptedException {
        List<KernelKey> keys = KernelVariants.ready();
        try (ExecutorService threads = Executors.newFixedThreadPool(COMPILERS)) {
            try {
                var compilers = new ExecutorCompletionService<Path>(threads);
                List<Future<Path>> compiled = new ArrayList<>();
                for (KernelKey key : keys) {
                    String name = key.fileName(sources);
                    compiled.add(compilers.submit(() -> compile(key, name, work)));
                }
                for (int left = compiled.size(); left > 0; left--) {
                    compilers.take().get();
                }
            } catch (ExecutionException e) {
                throw new RunFailedException(ErrorMessage.of(e.getCause()));
            } finally {
                threads.shutdownNow();
            }
        }
        console(false).print("compiled " + keys.size() + " kernels with " + nvcc);
    }

    private Path compile(KernelKey key, String name, Path work)
            throws IOException, InterruptedException {
        Path log = work.resolve(name + ".log");
        ProcessBuilder builder =
                new ProcessBuilder(command(key, work.resolve(key.source()), work.resolve(name)))
                        .redirectErrorStream(true)
                        .redirectOutput(log.toFile());
        builder.environment().put("TMPDIR", work.toString());
        Process process = builder.start();
        try {
            if (process.waitFor() != 0) {
                throw new RunFailedException(
                        String.join(" ", builder.command()) + " failed: " + reason(log));
            }
        } finally {
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly();
        }
        return Files.move(work.resolve(name), out.resolve(name));
    }

    private List<String> command(KernelKey key, Path source, Path cubin) {
        List<String> command = new ArrayList<>(List.of(nvcc.toString(), "-cubin", "-std=c++17"));
        command.addAll(key.options());
        String code = key.architecture();
        command.add("-gencode=arch=" + code.replace("sm_", "compute_") + ",code=" + code);
        command.addAll(List.of("-o", cubin.toString(), source.toString()));
        return command;
    }

    /** The compiler's first error, or whatever it printed first. */
    private static String reason(Path log) throws IOException {
        List<String> lines = Files.readAllLines(log);
        return lines.stream()
                .filter(line -> line.contains("error") || line.contains("fatal"))
                .findFirst()
                .or(() -> lines.stream().findFirst())
                .orElse("it said nothing");
    }
}
