package dev.weft.examples.llm;

import dev.weft.examples.llm.Attention.Row;
import dev.weft.fabric.World;
import dev.weft.trace.CallLog;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;

/** Logs what each rank does for one more token, for {@code weft report}: see README.md. */
public final class StepTimeline {

    private static final int PLACES = 64;

    private StepTimeline() {}

    /** Takes a model, and how the files begin: with {@code step} they are step-0.json, ... */
    public static void main(String... args) throws IOException {
        log(Path.of(args[0]), args.length == 1 ? "step" : args[1]);
    }

    static void log(Path file, String name) throws IOException {
        try (Arena arena = Arena.ofShared();
                World world = World.auto(2)) {
            Model model = Model.load(file, "file", arena);
            world.run(
                    fabric -> {
                        Path logged = Path.of(name + "-" + fabric.rank() + ".json");
                        var capacity = new Decoder.Capacity(1, 1, PLACES, 0);
                        try (Decoder decoder = Decoder.of(fabric, model, capacity)) {
                            CallLog rehearsal = new CallLog(fabric);
                            CallLog log = new CallLog(fabric);
                            // The last one is kept: the first ones, and the first logs, are slower.
                            for (int place = 0; place < PLACES; place++) {
                                Row[] row = {new Row(0, place)};
                                boolean last = place == PLACES - 1;
                                decoder.call(
                                        last ? log : rehearsal, new int[] {1000 + place}, row, 0);
                            }
                            log.write(logged);
                        } catch (IOException e) {
                            throw new UncheckedIOException(e);
                        }
                    });
        }
    }
}
