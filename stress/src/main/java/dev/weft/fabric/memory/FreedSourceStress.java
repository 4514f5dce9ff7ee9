package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import java.lang.foreign.ValueLayout;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.I_Result;

/**
 * A chunk's source is free once a word says so: whoever then overwrites it does not disturb the one
 * who read it before. So the progress thread tells movers of messages that have gone, by the same
 * {@link MemoryFabric#store}, and ping-pong buffers are given back.
 */
@JCStressTest
@Outcome(id = "1", expect = ACCEPTABLE, desc = "The source was read before it was overwritten.")
@Outcome(expect = FORBIDDEN, desc = "The reader saw what came after its own word.")
@State
public class FreedSourceStress {

    private static final Slots SLOTS = new Slots();
    private static final MemoryRegion WORDS = (MemoryRegion) Slots.region(Integer.BYTES);
    private static final Region SOURCES = Slots.region(Long.BYTES);
    private static final MemoryFabric PROGRESS = (MemoryFabric) Slots.rank(0);
    private static final Awaited ENDED = Awaited.of("the end of a transfer", 0);

    private final long word;
    private final long source;
    private final int epoch;

    public FreedSourceStress() {
        long number = SLOTS.next();
        word = (long) Integer.BYTES * Slots.slot(number);
        source = (long) Long.BYTES * Slots.slot(number);
        epoch = Slots.epoch(number);
        SOURCES.part(0).set(ValueLayout.JAVA_LONG, source, epoch);
    }

    @Actor
    public void transport(I_Result r) {
        r.r1 = SOURCES.part(0).get(ValueLayout.JAVA_LONG, source) == epoch ? 1 : 0;
        PROGRESS.store(WORDS, 0, word, epoch);
    }

    @Actor
    public void mover() {
        Slots.rank(1).await(WORDS, 0, word, epoch, ENDED);
        SOURCES.part(0).set(ValueLayout.JAVA_LONG, source, -1);
    }
}
