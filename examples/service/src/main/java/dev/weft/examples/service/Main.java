package dev.weft.examples.service;

import dev.weft.examples.encoder.Model;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.World;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.net.BindException;
import java.util.List;

/** Serves until SIGTERM or SIGINT: see docs/service.md. */
public final class Main {

    private Main() {}

    /**
     * Takes the options of {@link Settings}. Exit codes: 0 at the end, 1 if ranks failed, 2 for bad
     * options.
     */
    public static void main(String... args) throws IOException {
        if (List.of(args).contains("--help")) {
            IO.println("Options:\n" + Settings.usage(Settings.OPTIONS));
            return;
        }
        try {
            Settings settings = Settings.of(Settings.parse(Settings.OPTIONS, args));
            serve(settings);
        } catch (IllegalArgumentException e) {
            fail(2, e);
        } catch (FabricException | IllegalStateException | UnsupportedOperationException e) {
            fail(1, e);
        }
    }

    private static void fail(int code, RuntimeException e) {
        System.err.println("service: " + e.getMessage());
        System.exit(code);
    }

    private static void serve(Settings settings) throws IOException {
        try (Arena arena = Arena.ofShared()) {
            Service service = new Service(settings, Model.load(arena));
            EndSignals.handle(service::stop);
            World world = settings.world();
            // Only rank 0 takes requests; they wait until it serves.
            boolean hasRank0 = world.call(Fabric::rank).contains(0);
            try (Http http = hasRank0 ? new Http(service, settings.port()) : null) {
                if (hasRank0) {
                    IO.println("serving on http://localhost:" + http.port());
                }
                service.run(world);
            } catch (BindException e) {
                world.close();
                throw new IllegalArgumentException(
                        "--port %d: %s; expected a free one"
                                .formatted(settings.port(), e.getMessage()),
                        e);
            }
        }
    }
}
