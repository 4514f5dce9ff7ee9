package dev.weft.cli.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.options.ProblemOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Problems that no host has room for. */
class RoomTest {

    @TempDir Path folder;

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "run --gm 1099511627776 --gk 64 | at least 4224.0 TiB of memory, this host has",
                "run --gm 1099511627776 --launcher processes --gk 64 | of memory, this host has",
                "run --gm 4 --gk 1 --gn 1099511627776 | of memory, this host has",
                "run --gk 1099511627776 --op matmul-allreduce | of memory, this host has",
                "gen-data --gm 1099511627776 | of memory, this host has"
            })
    void whatCannotFitIsRefusedBeforeAnythingIsWritten(String command, String expected) {
        boolean hasData = command.startsWith("run") || command.startsWith("gen-data");
        Path data = folder.resolve("out");
        Invocation.ofWords(command + (hasData ? " --data-dir " + data : ""))
                .assertRefused(expected);
        assertFalse(Files.exists(data));
    }

    /** Nothing is allocated. */
    @ParameterizedTest
    @CsvSource({
        "run -r sim -v h200-nvlink8 -n 8 --gm 65536 --gk 1073741824 --gn 64",
        "plan -v h200-nvlink8 -n 8 --gm 65536 --gk 1073741824 --gn 64"
    })
    void modelsHaveRoomForAnything(String command) {
        Invocation run = Invocation.ofWords(command);
        assertEquals(0, run.code(), run.err());
    }

    /** A stamp may say anything. */
    @Test
    void verifyRefusesAProblemThatCannotFit() throws IOException {
        String small = "gen-data -n 2 --gm 8 --gk 8 --gn 8 --data-dir " + folder;
        assertEquals(0, Invocation.ofWords(small).code());
        Path stamp = folder.resolve("data.txt");
        String text = Files.readString(stamp).replace("shards 4,4", "shards 4,1099511627776");
        Files.writeString(stamp, text);
        Invocation.ofWords("verify --data-dir " + folder).assertRefused("of memory, this host has");
    }

    @Test
    void aProblemsBytesAreThoseOfItsMatrices() {
        ProblemOptions options = new ProblemOptions();
        options.m = 8L;
        options.k = 4L;
        options.n = 6L;
        ProblemRoom columns = ProblemRoom.of(options.spec(), null);
        assertEquals(new ProblemRoom(64, 48, 192, 192, 64), columns);
        assertEquals(new Room.Need(192 + 64 + 48, 64 + 48 + 192, 0), columns.toGenerate(true));
        assertEquals(new Room.Need(0, 64 + 48, 0), columns.toGenerate(false));
        options.replicateB();
        assertEquals(384, ProblemRoom.of(options.spec(), null).c());
    }

    @Test
    void theMemoryLeftIsKnown() throws IOException {
        assertTrue(Room.memory() > 1 << 20, () -> "some");
        Room.checkMemory(1);
    }
}
