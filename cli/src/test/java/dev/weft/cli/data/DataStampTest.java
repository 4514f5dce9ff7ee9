package dev.weft.cli.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class DataStampTest {

    private static final ProblemSpec SPEC =
            new ProblemSpec(
                    4,
                    ReplicaGroups.equal(4, 2),
                    Shards.of(5, 3),
                    16,
                    8,
                    DType.FP16,
                    DType.BF16,
                    DType.FP32,
                    true,
                    false,
                    "normal",
                    Long.MIN_VALUE,
                    null,
                    null,
                    null);

    @TempDir private Path folder;

    @Test
    void whatIsWrittenIsRead() {
        assertEquals(
                SPEC, DataStamp.read(DataStamp.write(SPEC, true), ProblemSpec.GATHER, DType.FP32));
    }

    @ParameterizedTest
    @ValueSource(strings = {"0,1/2,3,4", "4,1,2/0", "3,0"})
    void listsOfRanksAreReadAsWritten(String groups) {
        ReplicaGroups lists = ReplicaGroups.parse(groups);
        int members = lists.groups().getFirst().size();
        ProblemSpec spec =
                new ProblemSpec(
                        5,
                        lists,
                        Shards.even(31, members),
                        16,
                        8,
                        DType.FP16,
                        DType.FP16,
                        DType.FP32,
                        false,
                        false,
                        "normal",
                        19,
                        null,
                        null,
                        null);
        assertEquals(
                spec, DataStamp.read(DataStamp.write(spec, true), ProblemSpec.GATHER, DType.FP32));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "format weft-data-2|format weft-data-3|expected format weft-data-2",
                "format weft-data-2|format weft-data-unfinished|not finished",
                "shards 5,3|sherds 5,3|shards is missing",
                "shards 5,3|shards 5,|shards is '5,'",
                "shards 5,3|shards 5,-3|shards is '5,-3'",
                "shards 5,3|shards 5|expected 2 numbers",
                "shards 5,3|shards 999999999999999999,3|expected zero or more rows each",
                "ranks 4|ranks 0|--n-ranks 0",
                "ranks 4|ranks four|ranks is 'four'",
                "ranks 4|ranks 99999999999|--n-ranks 2147483647",
                "groups 2|groups 3|--groups 3",
                "k 16|k 0|--gk 0",
                "n 8|n 99999999999999999999|n is '99999999999999999999'",
                "a fp16|a fp8|unknown dtype 'fp8'",
                "transposeB false|transposeB maybe|transposeB is 'maybe'",
                "data normal|data zeros|--data 'zeros'",
                "seed -9223372036854775808|seed 9223372036854775808|seed is '9223372036854775808'"
            })
    void aStampThatDescribesNoProblemIsRefused(String from, String to, String expected) {
        String text = DataStamp.write(SPEC, true);
        assertTrue(text.contains(from + "\n"), text);
        String damaged = text.replace(from + "\n", to + "\n");
        UsageException e =
                assertThrows(
                        UsageException.class,
                        () -> DataStamp.read(damaged, ProblemSpec.GATHER, DType.FP32));
        assertTrue(e.getMessage().contains(expected), e.getMessage());
    }

    @Test
    void itsTextIsRepeatedOnOneLine() {
        String text = DataStamp.write(SPEC, true).replace("k 16", "k 1\r6" + "x".repeat(500));
        UsageException e =
                assertThrows(
                        UsageException.class,
                        () -> DataStamp.read(text, ProblemSpec.GATHER, DType.FP32));
        assertEquals(1, e.getMessage().lines().count(), e.getMessage());
        assertTrue(e.getMessage().length() < 150, e.getMessage());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "fp32 0 normal",
                "fp32 5 normal",
                "fp32 -1 normal",
                "fp8 4 normal",
                "e4m3 4 normal",
                ""
            })
    void outputsOfNoRunAreRefused(String outputs) throws IOException {
        Files.writeString(folder.resolve("data.txt"), DataStamp.write(SPEC, true));
        Files.writeString(folder.resolve("outputs.txt"), outputs);
        UsageException e =
                assertThrows(
                        UsageException.class, () -> DataFolder.existing(folder, null).outputs());
        assertTrue(e.getMessage().contains("outputs.txt: cannot be understood"), e.getMessage());
    }
}
