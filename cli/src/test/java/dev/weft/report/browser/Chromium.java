package dev.weft.report.browser;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/**
 * A headless Chromium with a fresh profile in the folder for temporary files. Told what to do over
 * pipes, not over a port: nobody else on the machine can reach it, and it ends by itself when this
 * JVM does. After {@link #close} neither its processes nor its profile are left.
 */
final class Chromium implements AutoCloseable {

    private static final long LIMIT_SECONDS = 30;

    private final Path profile;
    private final Process process;
    private final DevTools tools;

    private Chromium(Path profile, Process process) {
        this.profile = profile;
        this.process = process;
        tools = new DevTools(process.getInputStream(), process.getOutputStream());
    }

    /** Starts one; aborts the test, visibly, where none is installed. */
    static Chromium start() throws IOException {
        Path program = program();
        Path profile = Files.createTempDirectory("weft-chromium-");
        Chromium chromium = new Chromium(profile, launch(program, profile));
        try {
            chromium.tools.call(null, "Browser.getVersion", Map.of());
            return chromium;
        } catch (IllegalStateException e) {
            String log = Files.readString(profile.resolve("log"));
            chromium.close();
            throw new IllegalStateException(program + " did not start: " + log, e);
        }
    }

    private static Path program() {
        String chosen = System.getProperty("weft.chromium");
        if (chosen != null) {
            return Path.of(chosen);
        }
        List<Path> places = new ArrayList<>(List.of(Path.of("/usr/bin/chromium")));
        for (String name : List.of("chromium", "chromium-browser", "google-chrome")) {
            for (String folder : System.getenv("PATH").split(File.pathSeparator)) {
                places.add(Path.of(folder, name));
            }
        }
        return places.stream()
                .filter(Files::isExecutable)
                .findFirst()
                .orElseGet(
                        () ->
                                Assumptions.abort(
                                        "no Chromium: install Debian's package chromium, or run"
                                                + " ./weft test --with-extras"));
    }

    private static Process launch(Path program, Path profile) throws IOException {
        List<String> command = new ArrayList<>();
        // Commands come on descriptor 3 and go on 4, which Java cannot set up.
        command.addAll(List.of("sh", "-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >&2"));
        command.addAll(
                List.of(
                        program.toString(),
                        "--headless=new",
                        "--remote-debugging-pipe",
                        "--user-data-dir=" + profile.resolve("data"),
                        "--disable-gpu",
                        "--disable-quic",
                        "--disable-dev-shm-usage",
                        "--disable-background-networking",
                        "--disable-component-update",
                        "--disable-sync",
                        "--disable-extensions",
                        "--disable-breakpad",
                        "--no-first-run",
                        "--no-default-browser-check",
                        "--hide-scrollbars",
                        "--force-color-profile=srgb"));
        if (System.getProperty("user.name").equals("root")) {
            command.add("--no-sandbox");
        }
        command.add("about:blank");
        ProcessBuilder builder = new ProcessBuilder(command);
        // Caches and key stores that no flag moves.
        builder.environment().put("HOME", profile.toString());
        builder.environment().keySet().removeIf(name -> name.startsWith("XDG_"));
        builder.redirectError(profile.resolve("log").toFile());
        return builder.start();
    }

    /** An empty page in a tab of its own. */
    Page page() {
        String target =
                Json.text(
                        tools.call(null, "Target.createTarget", Map.of("url", "about:blank")),
                        "targetId");
        Object attached =
                tools.call(
                        null, "Target.attachToTarget", Map.of("targetId", target, "flatten", true));
        return new Page(tools, target, Json.text(attached, "sessionId"));
    }

    /** Those that run now. */
    List<ProcessHandle> processes() {
        return Stream.concat(process.descendants(), Stream.of(process.toHandle())).toList();
    }

    Path profile() {
        return profile;
    }

    @Override
    public void close() throws IOException {
        // Before it ends: then they would be nobody's children.
        List<ProcessHandle> tree = processes();
        if (process.isAlive()) {
            try {
                tools.call(null, "Browser.close", Map.of());
            } catch (IllegalStateException e) {
                process.destroy();
            }
        }
        tree.forEach(Chromium::end);
        try (Stream<Path> files = Files.walk(profile)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }

    private static void end(ProcessHandle process) {
        try {
            process.onExit().get(LIMIT_SECONDS, TimeUnit.SECONDS);
        } catch (TimeoutException e) {
            process.destroyForcibly();
        } catch (ExecutionException e) {
            throw new IllegalStateException("process " + process.pid(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            process.destroyForcibly();
        }
    }
}
