package dev.weft.fabric.memory;

import dev.weft.fabric.World;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * A starter that starts some of its ranks and waits for their end; or, in an environment that says
 * so, one of those ranks, which waits for something that never comes. Ranks write to files: the
 * starter's output ends with it.
 */
final class StarterChild {

    private static final Duration DEADLINE = Duration.ofMinutes(10);

    private StarterChild() {}

    public static void main(String[] args) throws Exception {
        if (System.getenv(RankEnvironment.RANK) != null) {
            runRank();
        } else {
            start(Integer.parseInt(args[0]), Integer.parseInt(args[1]), Path.of(args[2]));
        }
    }

    private static void start(int ranks, int started, Path outputs)
            throws IOException, InterruptedException {
        List<Process> processes = new ArrayList<>();
        try (ShmJob job = ShmJob.create()) {
            System.out.println("folder " + job.folder());
            for (int rank = 0; rank < started; rank++) {
                List<String> command = new ArrayList<>();
                command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
                command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
                command.addAll(List.of("-cp", System.getProperty("java.class.path")));
                command.add(StarterChild.class.getName());
                ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
                builder.redirectOutput(outputs.resolve("rank-" + rank).toFile());
                builder.environment().putAll(job.environment(rank, ranks, DEADLINE));
                processes.add(builder.start());
            }
            for (Process process : processes) {
                process.waitFor();
            }
        }
    }

    private static void runRank() {
        System.out.println("pid " + ProcessHandle.current().pid());
        try (World world = World.joined()) {
            world.run(
                    given -> {
                        Transport fabric = Transport.of(given);
                        Region region = fabric.allocate(64);
                        int peer = (fabric.rank() + 1) % fabric.size();
                        System.out.println("running");
                        fabric.await(region, fabric.rank(), 0, 1, Awaited.of("nothing", peer));
                    });
        } catch (RuntimeException e) {
            System.out.println("ended " + e.getClass().getSimpleName() + " " + e.getMessage());
        }
    }
}
