package dev.weft.stress;

import dev.weft.fabric.World;
import dev.weft.ffi.MpiEnvironment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

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

    /** How a rank is started: this Java, these classes, small and quick to start. */
    static List<String> command(Case run) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        String options =
                "-Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
                        + " --enable-native-access=ALL-UNNAMED";
        command.addAll(List.of(options.split(" ")));
        if (run.launcher() == Case.Launcher.HOSTS) {
            command.add("-Dweft.mpi.ranks.per.host=" + MpirunRanks.RANKS_PER_HOST);
        }
        command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        command.add(RankMain.class.getName());
        command.addAll(List.of(run.words().split(" ")));
        return command;
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
        RankEnd end;
        try {
            end = RankEnd.right(rank, work());
        } catch (RuntimeException | Error e) {
            end = RankEnd.of(rank, e, 0);
        }
        say(end.words());
        return end.how() == RankEnd.How.RIGHT ? 0 : 1;
    }

    private Workload.Tally work() {
        Runnable atFault = () -> say("fault " + System.currentTimeMillis());
        Injector injector = new Injector(run, rank, Injector.BY_SIGNAL, atFault);
        if (run.launcher().isMpi()) {
            // Of processes that share a folder it comes from outside, once they are half-way.
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

    /** One write, so that lines of ranks that share an output stay whole. */
    private void say(String what) {
        System.out.print(SAYS + rank + " " + what + "\n");
        System.out.flush();
    }
}
