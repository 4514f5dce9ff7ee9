package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.transport.Region;
import java.lang.foreign.ValueLayout;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * Ranks that are threads free a region when the last of them lets go of it: who is slow still reads
 * its peer's part, and the memory is freed once.
 */
@JCStressTest
@Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Both read what their peer had written.")
@Outcome(expect = FORBIDDEN, desc = "A part was gone, or not its owner's.")
@State
public class RegionLifeStress {

    private static final Slots SLOTS = new Slots();

    private final long number = SLOTS.next();

    @Actor
    public void rank0(II_Result r) {
        r.r1 = peersPart(0);
    }

    @Actor
    public void rank1(II_Result r) {
        r.r2 = peersPart(1);
    }

    private int peersPart(int rank) {
        try (Region region = Slots.rank(rank).allocate(Long.BYTES)) {
            region.part(rank).set(ValueLayout.JAVA_LONG, 0, 2 * number + rank);
            Slots.rank(rank).barrier();
            long peers = region.part(1 - rank).get(ValueLayout.JAVA_LONG, 0);
            return peers == 2 * number + 1 - rank ? 1 : 0;
        }
    }
}
