package dev.weft.examples.encoder;

import dev.weft.fabric.World;
import dev.weft.trace.CallLog;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Logs what each rank does in one layer, for {@code weft report}: see README.md. */
public final class LayerTimeline {

    private static final int SENTENCES = 16;
    private static final int TOKENS = 128;
    private static final int CALLS = 8;
    private static final int LAYER = 3;

    private LayerTimeline() {}

    /** Takes how the files begin: with {@code layer} they are layer-0.json, layer-1.json, ... */
    public static void main(String... args) throws IOException {
        log(args.length == 0 ? "layer" : args[0], SENTENCES, CALLS);
    }

    static void log(String name, int sentences, int calls) throws IOException {
        try (Arena arena = Arena.ofShared();
                World world = World.auto(2)) {
            Weights weights = Weights.load(arena);
            world.run(
                    fabric -> {
                        Path file = Path.of(name + "-" + fabric.rank() + ".json");
                        try (Pass pass = new Pass(fabric, weights, sentences * TOKENS)) {
                            CallLog log = new CallLog(fabric);
                            call(pass, sentences, calls, log);
                            log.write(file);
                        } catch (IOException e) {
                            throw new UncheckedIOException(e);
                        }
                    });
        }
    }

    /** The last of some calls is logged: the first ones are slower. */
    private static void call(Pass pass, int count, int calls, CallLog log) {
        int[] ids = new int[count * TOKENS];
        int[] places = new int[ids.length];
        List<Attention.Rows> sentences = new ArrayList<>();
        for (int row = 0; row < ids.length; row++) {
            // Any words do: how long a layer takes does not depend on them.
            ids[row] = 1000 + row;
            places[row] = row % TOKENS;
            if (places[row] == 0) {
                sentences.add(new Attention.Rows(row, TOKENS));
            }
        }
        for (int i = 1; i < calls; i++) {
            pass.call(ids, places, sentences);
        }
        pass.call(ids, places, sentences, LAYER, log);
    }
}
