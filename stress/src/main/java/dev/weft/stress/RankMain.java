package dev.weft.stress;

import dev.weft.fabric.FabricException;
import dev.weft.fabric.World;
import dev.weft.ffi.MpiEnvironment;
import java.time.Duration;

/**
 * One rank of a case, in a process of its own. It says on standard output, in lines that start with
 * {@link #SAYS} and its number, who it is, when its fault happens and how it ends.
 */
final class RankMain {

    static final String SAYS = "weft-stress ";

    private final Case run;
    private final int rank;

    private RankMain(Case run, int rank) {
        this.run = run;
        this.rank = rank;
    }

    public static void main(String[] words) {
        Case run = Case.parse(String.join(" ", words));
        int rank =
                run.launcher().isMpi()
                        ? MpiEnvironment.current().rank().orElse(-1)
                        : Integer.parseInt(System.getenv("WEFT_RANK"));
        System.exit(new RankMain(run, rank).live());
    }

    private int live() {
        say("pid " + ProcessHandle.current().pid());
        try {
            Workload.Tally tally = work();
            say("right %d %d %d".formatted(tally.calls(), tally.sums(), tally.bytes()));
            return 0;
        } catch (FabricException e) {
            say("error " + kind(e) + " " + e.peer() + " " + line(e));
        } catch (CheckedOperator.WrongResult e) {
            say("wrong " + line(e));
        } catch (RuntimeException | Error e) {
            say("other " + kind(e) + " -1 " + line(e));
        }
        return 1;
    }

    private Workload.Tally work() {
        Runnable told = () -> say("fault " + System.currentTimeMillis());
        Injector injector = new Injector(run, rank, Injector.BY_SIGNAL, told);
        if (run.launcher().isMpi()) {
            // Processes that meet in a folder are met from outside, once they are half-way.
            injector.at(Fault.Phase.RENDEZVOUS);
        }
        try (World world = join()) {
            Workload.Tally tally = work(world, injector);
            injector.at(Fault.Phase.CLOSE);
            return tally;
        }
    }

    /** An error's time is that of its throw: leaving MPI afterwards may take a while. */
    private Workload.Tally work(World world, Injector injector) {
        try {
            return world.call(new Workload(run, injector)::on).getFirst();
        } catch (RuntimeException | Error e) {
            say("throws " + System.currentTimeMillis());
            throw e;
        }
    }

    private World join() {
        return run.launcher().isMpi()
                ? World.mpi(Duration.ofMillis(run.deadlineMs()))
                : World.joined();
    }

    static String kind(Throwable failure) {
        return failure.getClass().getSimpleName();
    }

    static String line(Throwable failure) {
        return String.valueOf(failure.getMessage()).lines().findFirst().orElse("");
    }

    /** One write, so that lines of ranks that share an output stay whole. */
    private void say(String what) {
        System.out.print(SAYS + rank + " " + what + "\n");
        System.out.flush();
    }
}
