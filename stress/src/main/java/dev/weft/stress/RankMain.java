package dev.weft.stress;

import dev.weft.cli.message.RankLines;
import dev.weft.fabric.World;
import dev.weft.ffi.MpiEnvironment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * One rank of a case, in a process of its own. It says on standard output, as {@link RankLines},
 * who it is, when its fault happens and how it ends.
 */
final class RankMain {

    /** All that a rank says. */
    static final List<Class<? extends Record>> MESSAGES =
            List.of(Started.class, FaultAt.class, ThrownAt.class, RankEnd.class);

    record Started(long pid) {}

    record FaultAt(long ms) {}

    /** When its error was thrown: leaving MPI afterwards may take a while. */
    record ThrownAt(long ms) {}

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
        say(new Started(ProcessHandle.current().pid()));
        RankEnd end;
        try {
            end = RankEnd.right(rank, work());
        } catch (RuntimeException | Error e) {
            end = RankEnd.of(rank, e, 0);
        }
        say(end);
        return end.how() == RankEnd.How.RIGHT ? 0 : 1;
    }

    private Workload.Tally work() {
        Runnable atFault = () -> say(new FaultAt(System.currentTimeMillis()));
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

    private Workload.Tally work(World world, Injector injector) {
        try {
            return world.call(new Workload(run, injector)::on).getFirst();
        } catch (RuntimeException | Error e) {
            say(new ThrownAt(System.currentTimeMillis()));
            throw e;
        }
    }

    private World join() {
        return run.launcher().isMpi()
                ? World.mpi(Duration.ofMillis(run.deadlineMs()))
                : World.joined();
    }

    /** One write, so that lines of ranks that share an output stay whole. */
    private void say(Record message) {
        System.out.print(String.join("\n", RankLines.of(rank, message)) + "\n");
        System.out.flush();
    }
}
