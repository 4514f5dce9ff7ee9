package dev.weft.stress;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** More ranks than cores, and runs side by side. */
class LoadIT {

    private static Ending check(String words) {
        Ending ending = Case.parse("fault=none deadline=60000 " + words).execute();
        assertEquals(List.of(), ending.problems(), ending.run().words());
        assertEquals(
                (long) ending.run().ranks() * ending.run().calls(),
                ending.tally().calls(),
                ending.run().words());
        return ending;
    }

    @Test
    void sixteenThreads() {
        check("ranks=16 calls=4");
    }

    @Test
    @Tag("long")
    void thirtyTwoThreads() {
        check("ranks=32 calls=4");
    }

    @Test
    @Tag("long")
    void sixtyFourThreads() {
        check("ranks=64 calls=4");
    }

    @Test
    @Tag("long")
    void thirtyTwoProcesses() {
        check("launcher=processes ranks=32 calls=8");
    }

    /** One of them loses a rank: the other does not notice. */
    @Test
    void runsSideBySideDoNotDisturbEachOther() {
        List<String> runs =
                List.of(
                        "launcher=processes ranks=2 calls=24 seed=1",
                        "launcher=processes ranks=2 calls=24 seed=2",
                        "ranks=3 calls=48 seed=3");
        Stream<CompletableFuture<Ending>> others =
                runs.stream().map(words -> CompletableFuture.supplyAsync(() -> check(words)));
        List<CompletableFuture<Ending>> started = others.toList();
        Ending dying =
                Case.parse(
                                "launcher=processes ranks=2 rank=1 fault=kill phase=last-chunk"
                                        + " algorithm=ring deadline=60000")
                        .execute();
        assertEquals(List.of(), dying.problems());
        started.forEach(CompletableFuture::join);
    }
}
