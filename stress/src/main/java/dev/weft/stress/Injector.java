package dev.weft.stress;

import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/** Lets a case's fault happen to one rank, once, at its moment. Any thread of the rank may call. */
final class Injector {

    /** What ends a rank that is a thread, where a process would be killed. */
    static final class Killed extends Error {
        private static final long serialVersionUID = 1L;

        Killed(String message) {
            super(message);
        }
    }

    /** How a rank's end or stop comes about: by a signal, or as a thread of this process. */
    interface End {
        void kill();

        void freeze();
    }

    /** For processes. */
    static final End BY_SIGNAL =
            new End() {
                @Override
                public void kill() {
                    ProcessSignals.sendToSelf(ProcessSignals.KILL);
                }

                @Override
                public void freeze() {
                    ProcessSignals.sendToSelf(ProcessSignals.STOP);
                }
            };

    private final Case run;
    private final boolean chosen;
    private final End end;
    private final Runnable atFault;
    private final SplittableRandom random;
    private boolean occurred;

    /**
     * @param atFault called right before the fault happens
     */
    Injector(Case run, int rank, End end, Runnable atFault) {
        this.run = run;
        this.chosen = run.fault().rank() == rank;
        this.end = end;
        this.atFault = atFault;
        this.random = new SplittableRandom(run.seed() * 31 + rank);
    }

    Case run() {
        return run;
    }

    /** Whether the rank has chunks delayed or reordered throughout. */
    boolean is(Fault.Type kind) {
        return run.fault().type() == kind && (chosen || run.everyRank());
    }

    /** Whether this is the moment of a fault of {@code kind}; true once. */
    synchronized boolean now(Fault.Type kind, Fault.Phase phase) {
        if (!chosen || occurred || run.fault().type() != kind || run.fault().phase() != phase) {
            return false;
        }
        occurred = true;
        atFault.run();
        return true;
    }

    /** The moment has come for whatever ends or stops the rank there. */
    void at(Fault.Phase phase) {
        if (now(Fault.Type.KILL, phase)) {
            end.kill();
        } else if (now(Fault.Type.FREEZE, phase)) {
            end.freeze();
        } else if (now(Fault.Type.THROW, phase)) {
            throw new IllegalStateException("the press broke");
        }
    }

    /** A short while, often none: as a rank comes late that others keep from its core. */
    void dawdle() {
        if (is(Fault.Type.DELAY)) {
            occur();
            sleepMicros(micros(run.delayMicros()));
        }
    }

    /** One of many such faults happens. */
    synchronized void occur() {
        if (!occurred) {
            occurred = true;
            atFault.run();
        }
    }

    /** Zero three times out of four; otherwise up to {@code most}. */
    synchronized long micros(long most) {
        return random.nextInt(4) > 0 ? 0 : random.nextLong(most + 1);
    }

    synchronized boolean coin() {
        return random.nextBoolean();
    }

    /** A value that no call of the case comes near. */
    synchronized int nonsense(int rightly) {
        int far = rightly + (1 << 20) + random.nextInt(1 << 20);
        return random.nextBoolean() ? far : rightly + Integer.MAX_VALUE - random.nextInt(1 << 20);
    }

    /** Hangs for longer than anybody waits. */
    void hang() {
        sleepMicros(TimeUnit.MILLISECONDS.toMicros(2 * run.deadlineMs() + 1500));
    }

    static void sleepMicros(long micros) {
        if (micros <= 0) {
            return;
        }
        try {
            TimeUnit.MICROSECONDS.sleep(micros);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
