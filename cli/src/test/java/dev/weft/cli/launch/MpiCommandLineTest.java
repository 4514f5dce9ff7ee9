package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import dev.weft.ffi.MpiFamily;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The words with which mpirun is called. */
class MpiCommandLineTest {

    private static List<String> command(
            MpiFamily family, int ranks, String hostfile, String mpiArgs, String labHosts) {
        List<String> more = MpiCommandLine.words("--mpi-args", mpiArgs == null ? "" : mpiArgs);
        return MpiCommandLine.ofWeft(hostfile, mpiArgs, ranks, List.of("run"))
                .command("mpirun", family, more, Map.of("WEFT_LAB_HOSTS", labHosts));
    }

    @ParameterizedTest
    @CsvSource({
        "OPEN_MPI, 2, 2, --map-by ppr:1:node",
        "OPEN_MPI, 5, 2, --map-by ppr:3:node",
        "MPICH, 2, 2, -ppn 1",
        "MPICH, 12, 3, -ppn 4"
    })
    void theHostsOfALabShareTheRanks(MpiFamily family, int ranks, String hosts, String words) {
        List<String> command = command(family, ranks, null, " ", hosts);
        assertNotEquals(
                -1,
                Collections.indexOfSubList(command, List.of(words.split(" "))),
                command.toString());
    }

    @Test
    void theUsersOwnPlacesStay() {
        for (List<String> command :
                List.of(
                        command(MpiFamily.MPICH, 2, "hosts.txt", null, "2"),
                        command(MpiFamily.MPICH, 2, null, "-iface eth0", "2"),
                        command(MpiFamily.MPICH, 2, null, null, "none"))) {
            assertFalse(command.contains("-ppn"), command.toString());
        }
        List<String> open = command(MpiFamily.OPEN_MPI, 2, null, "--map-by node", "2");
        assertEquals(1, Collections.frequency(open, "--map-by"), open.toString());
    }
}
