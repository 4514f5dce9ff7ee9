package dev.weft.bench.cpu;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Fused multiply-adds that depend on nothing but the one before in the same sum. Only loaded where
 * the Vector API is there. Any thread may call it.
 *
 * <p>Sums are locals, each set on its own: vectors in an array or a field become heap objects. They
 * begin with different values, or the compiler might take them for one. There are more of them than
 * a core has under way at once, and two loops: 16 registers hold 12 sums and their factors but not
 * 24, and where there are 32, some cores need 16 sums or more.
 */
final class Fma {

    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_PREFERRED;

    /** So small that no sum gets far from where it begins, and none becomes subnormal. */
    private static final float FACTOR = 1e-5f;

    private Fma() {}

    /** Floating-point operations of a loop with so many sums. */
    static double flops(int sums, int steps) {
        return 2.0 * sums * SPECIES.length() * steps;
    }

    /** Twelve sums; returns something that depends on all of them. */
    static float twelve(int steps) {
        FloatVector x = FloatVector.broadcast(SPECIES, FACTOR);
        FloatVector y = FloatVector.broadcast(SPECIES, -FACTOR);
        FloatVector s0 = FloatVector.broadcast(SPECIES, 1);
        FloatVector s1 = FloatVector.broadcast(SPECIES, 2);
        FloatVector s2 = FloatVector.broadcast(SPECIES, 3);
        FloatVector s3 = FloatVector.broadcast(SPECIES, 4);
        FloatVector s4 = FloatVector.broadcast(SPECIES, 5);
        FloatVector s5 = FloatVector.broadcast(SPECIES, 6);
        FloatVector s6 = FloatVector.broadcast(SPECIES, 7);
        FloatVector s7 = FloatVector.broadcast(SPECIES, 8);
        FloatVector s8 = FloatVector.broadcast(SPECIES, 9);
        FloatVector s9 = FloatVector.broadcast(SPECIES, 10);
        FloatVector s10 = FloatVector.broadcast(SPECIES, 11);
        FloatVector s11 = FloatVector.broadcast(SPECIES, 12);
        for (int step = 0; step < steps; step++) {
            s0 = x.fma(y, s0);
            s1 = x.fma(y, s1);
            s2 = x.fma(y, s2);
            s3 = x.fma(y, s3);
            s4 = x.fma(y, s4);
            s5 = x.fma(y, s5);
            s6 = x.fma(y, s6);
            s7 = x.fma(y, s7);
            s8 = x.fma(y, s8);
            s9 = x.fma(y, s9);
            s10 = x.fma(y, s10);
            s11 = x.fma(y, s11);
        }
        FloatVector t0 = s0.add(s1).add(s2).add(s3).add(s4).add(s5);
        FloatVector t1 = s6.add(s7).add(s8).add(s9).add(s10).add(s11);
        return t0.add(t1).lane(0);
    }

    /** Twenty-four sums; returns something that depends on all of them. */
    static float twentyFour(int steps) {
        FloatVector x = FloatVector.broadcast(SPECIES, FACTOR);
        FloatVector y = FloatVector.broadcast(SPECIES, -FACTOR);
        FloatVector s0 = FloatVector.broadcast(SPECIES, 1);
        FloatVector s1 = FloatVector.broadcast(SPECIES, 2);
        FloatVector s2 = FloatVector.broadcast(SPECIES, 3);
        FloatVector s3 = FloatVector.broadcast(SPECIES, 4);
        FloatVector s4 = FloatVector.broadcast(SPECIES, 5);
        FloatVector s5 = FloatVector.broadcast(SPECIES, 6);
        FloatVector s6 = FloatVector.broadcast(SPECIES, 7);
        FloatVector s7 = FloatVector.broadcast(SPECIES, 8);
        FloatVector s8 = FloatVector.broadcast(SPECIES, 9);
        FloatVector s9 = FloatVector.broadcast(SPECIES, 10);
        FloatVector s10 = FloatVector.broadcast(SPECIES, 11);
        FloatVector s11 = FloatVector.broadcast(SPECIES, 12);
        FloatVector s12 = FloatVector.broadcast(SPECIES, 13);
        FloatVector s13 = FloatVector.broadcast(SPECIES, 14);
        FloatVector s14 = FloatVector.broadcast(SPECIES, 15);
        FloatVector s15 = FloatVector.broadcast(SPECIES, 16);
        FloatVector s16 = FloatVector.broadcast(SPECIES, 17);
        FloatVector s17 = FloatVector.broadcast(SPECIES, 18);
        FloatVector s18 = FloatVector.broadcast(SPECIES, 19);
        FloatVector s19 = FloatVector.broadcast(SPECIES, 20);
        FloatVector s20 = FloatVector.broadcast(SPECIES, 21);
        FloatVector s21 = FloatVector.broadcast(SPECIES, 22);
        FloatVector s22 = FloatVector.broadcast(SPECIES, 23);
        FloatVector s23 = FloatVector.broadcast(SPECIES, 24);
        for (int step = 0; step < steps; step++) {
            s0 = x.fma(y, s0);
            s1 = x.fma(y, s1);
            s2 = x.fma(y, s2);
            s3 = x.fma(y, s3);
            s4 = x.fma(y, s4);
            s5 = x.fma(y, s5);
            s6 = x.fma(y, s6);
            s7 = x.fma(y, s7);
            s8 = x.fma(y, s8);
            s9 = x.fma(y, s9);
            s10 = x.fma(y, s10);
            s11 = x.fma(y, s11);
            s12 = x.fma(y, s12);
            s13 = x.fma(y, s13);
            s14 = x.fma(y, s14);
            s15 = x.fma(y, s15);
            s16 = x.fma(y, s16);
            s17 = x.fma(y, s17);
            s18 = x.fma(y, s18);
            s19 = x.fma(y, s19);
            s20 = x.fma(y, s20);
            s21 = x.fma(y, s21);
            s22 = x.fma(y, s22);
            s23 = x.fma(y, s23);
        }
        FloatVector t0 = s0.add(s1).add(s2).add(s3).add(s4).add(s5);
        FloatVector t1 = s6.add(s7).add(s8).add(s9).add(s10).add(s11);
        FloatVector t2 = s12.add(s13).add(s14).add(s15).add(s16).add(s17);
        FloatVector t3 = s18.add(s19).add(s20).add(s21).add(s22).add(s23);
        return t0.add(t1).add(t2).add(t3).lane(0);
    }
}
