package dev.weft.stress;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** How a rank of a case is started: this Java, these classes, small and quick to start. */
final class ChildJava {

    /** Of those that take themselves for hosts. */
    static final int RANKS_PER_HOST = 2;

    private ChildJava() {}

    static List<String> command(Case run) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of(
                        "-Xmx192m",
                        "-XX:+UseSerialGC",
                        "-XX:TieredStopAtLevel=1",
                        "-Xshare:auto",
                        "--enable-native-access=ALL-UNNAMED"));
        if (run.launcher() == Case.Launcher.HOSTS) {
            command.add("-Dweft.mpi.ranks.per.host=" + RANKS_PER_HOST);
        }
        command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        command.add(RankMain.class.getName());
        command.addAll(List.of(run.words().split(" ")));
        return command;
    }
}
