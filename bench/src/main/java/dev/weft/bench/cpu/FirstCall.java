package dev.weft.bench.cpu;

import dev.weft.bench.peers.ChildCommand;
import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/**
 * The first call of a process beside later ones. A program of its own, which needs of Java no
 * option but native access, as any program that uses the library.
 */
final class FirstCall {

    private static final long SIZE = 1024;
    private static final int CALLS = 100;
    private static final Duration LIMIT = Duration.ofMinutes(2);

    static final String DESCRIPTION = "1 rank, %1$s x %1$s x %1$s fp32".formatted(SIZE);

    private FirstCall() {}

    /** Prints the nanoseconds of each call. */
    public static void main(String[] arguments) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(1)) {
            Matrix a = Matrix.allocate(arena, DType.FP32, SIZE, SIZE);
            Matrix b = Matrix.allocate(arena, DType.FP32, SIZE, SIZE);
            new NormalData(1, 0).fill(a);
            new NormalData(1, 1).fill(b);
            world.run(
                    fabric -> {
                        try (AllGatherMatmul operator =
                                AllGatherMatmul.on(fabric)
                                        .a(Shards.even(SIZE, 1), DType.FP32)
                                        .b(b)
                                        .prepare()) {
                            for (int call = 0; call < CALLS; call++) {
                                long began = System.nanoTime();
                                operator.call(a);
                                System.out.println(System.nanoTime() - began);
                            }
                        }
                    });
        }
    }

    /** The nanoseconds of each call of a fresh process. */
    static long[] callsNs(Path folder) throws IOException, InterruptedException {
        List<String> command =
                List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        FirstCall.class.getName());
        String times = new ChildCommand(command, folder).run(LIMIT).text();
        return times.lines().mapToLong(Long::parseLong).toArray();
    }
}
