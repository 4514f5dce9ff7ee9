package dev.weft.stress;

import dev.weft.fabric.memory.ShmJob;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Runs a case with processes that meet in a folder of shared memory. */
final class ProcessRanks {

    private final Case run;
    private final ShmJob job;

    private ProcessRanks(Case run, ShmJob job) {
        this.run = run;
        this.job = job;
    }

    static Ending run(Case run) {
        ShmJob job = ShmJob.create();
        Ending ending;
        try (job;
                RankProcesses processes = new RankProcesses(run)) {
            ending = new ProcessRanks(run, job).run(processes);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot start the ranks: " + e.getMessage(), e);
        }
        boolean stays = Files.exists(job.folder());
        return ending.withLeft(stays ? List.of(job.folder() + " is still there") : List.of());
    }

    private Ending run(RankProcesses processes) throws IOException {
        // Somebody comes late where a fault is to find the others waiting.
        boolean atRendezvous = run.fault().phase() == Fault.Phase.RENDEZVOUS;
        int late = atRendezvous ? (run.fault().rank() + 1) % run.ranks() : -1;
        for (int rank = 0; rank < run.ranks(); rank++) {
            if (rank != late) {
                processes.add(rank, start(rank));
            }
        }
        if (atRendezvous) {
            awaitControlBlock(run.fault().rank());
            processes.faultFromOutside();
            boolean freeze = run.fault().type() == Fault.Type.FREEZE;
            ProcessSignals.send(
                    processes.of(run.fault().rank()).pid(),
                    freeze ? ProcessSignals.STOP : ProcessSignals.KILL);
            processes.add(late, start(late));
            // Deadlines count from the last step forward, which this is.
            awaitControlBlock(late);
            processes.faultFromOutside();
        }
        return processes.await();
    }

    private RankProcesses.Output start(int rank) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(RankMain.command(run));
        Duration deadline = Duration.ofMillis(run.deadlineMs());
        builder.environment().putAll(job.environment(rank, run.ranks(), deadline));
        return new RankProcesses.Output(builder);
    }

    private void awaitControlBlock(int rank) {
        Path control = job.folder().resolve("rank-" + rank + ".control");
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!Files.exists(control)) {
            if (System.nanoTime() > until) {
                throw new IllegalStateException(control + " did not come");
            }
            LockSupport.parkNanos(1_000_000);
        }
    }
}
