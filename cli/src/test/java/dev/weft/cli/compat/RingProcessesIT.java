package dev.weft.cli.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.cli.Invocation;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The ring's ranks in JVMs of their own. */
class RingProcessesIT {

    private static Invocation ring(String launcher) {
        return Invocation.of(
                "ring",
                "-n",
                "3",
                "--m",
                "9",
                "--k",
                "40",
                "--n-local",
                "11",
                "--seed",
                "7",
                "--launcher",
                launcher);
    }

    @Test
    void processesPrintWhatThreadsPrint() {
        Invocation processes = ring("processes");
        assertEquals(0, processes.code(), processes.err());
        List<String> lines = processes.out().lines().toList();
        assertEquals(3, lines.size());
        assertEquals(ring("threads").out().lines().toList(), lines);
    }
}
