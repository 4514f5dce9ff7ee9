package dev.weft.fabric.transport;

import dev.weft.fabric.Fabric;
import dev.weft.plan.PlanWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Checks that the ranks that prepare an operator mean the same one. Properties are added one by one
 * and compared together: one exchange if all ranks agree. If they do not, each property is
 * exchanged separately, so that the error says what differs, and between which ranks. Every rank
 * adds the same properties in the same order.
 */
public final class Agreement {

    private final Fabric fabric;

    private record Property(String name, long value) {}

    private final List<Property> properties = new ArrayList<>();

    public Agreement(Fabric fabric) {
        this.fabric = fabric;
    }

    /** Adds a property; all ranks must have the same value. */
    public Agreement on(String property, long value) {
        properties.add(new Property(property, value));
        return this;
    }

    /** Collective: throws on every rank if some rank's value differs from the first rank's. */
    public void settle() {
        List<Property> named = List.copyOf(properties);
        properties.clear();
        long digest = digest(named.stream().mapToLong(Property::value).toArray());
        if (!areAlike(fabric.exchange(digest))) {
            // All ranks have seen the same digests, so all get here.
            named.forEach(this::settle);
            throw new IllegalStateException("properties with unlike digests are alike");
        }
    }

    private static boolean areAlike(long[] values) {
        return Arrays.stream(values).allMatch(value -> value == values[0]);
    }

    /** One number for several: different ones give the same number in one of 2^64 cases. */
    public static long digest(long... values) {
        long digest = values.length;
        for (long value : values) {
            // The finalizer of SplitMix64, over the digest so far.
            digest = (digest ^ value) + 0x9E3779B97F4A7C15L;
            digest = (digest ^ (digest >>> 30)) * 0xBF58476D1CE4E5B9L;
            digest = (digest ^ (digest >>> 27)) * 0x94D049BB133111EBL;
            digest ^= digest >>> 31;
        }
        return digest;
    }

    private void settle(Property property) {
        long[] values = fabric.exchange(property.value());
        for (int r = 1; r < values.length; r++) {
            if (values[r] != values[0]) {
                throw new IllegalArgumentException(
                        "the ranks prepare different operators: %s is %s on rank %s and %s on rank %s"
                                .formatted(
                                        property.name(),
                                        values[0],
                                        fabric.worldRank(0),
                                        values[r],
                                        fabric.worldRank(r)));
            }
        }
    }

    /** A number by which ranks compare their algorithms. */
    public static long number(PlanWriter writer) {
        return writer instanceof Enum<?> known ? known.ordinal() : writer.label().hashCode();
    }

    /** Collective: the first rank's value. */
    public long ofFirst(long value) {
        return fabric.exchange(value)[0];
    }
}
