package dev.weft.cli.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Main;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.RunFailedException;
import dev.weft.cli.message.RankLines;
import dev.weft.cli.message.RecordBytes;
import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.FabricException.PeerLostException;
import dev.weft.fabric.FabricException.StallException;
import dev.weft.fabric.FailureReport;
import dev.weft.files.PrivateFiles;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** How a rank's end gets to its starter, and what that prints of it. */
class RankFailureTest {

    @TempDir Path folder;

    private final Map<Integer, Record> told = new TreeMap<>();

    private RankLines lines() {
        return new RankLines(List.of(RankFailure.class), told::put);
    }

    private static StallException stall(int rank, int peer) {
        return new StallException(
                rank, peer, -1, -1, "the arrival of rank " + peer, Duration.ofMillis(900));
    }

    @Test
    void whatIsWrittenIsReadBack() throws IOException {
        RankFailure stalled = RankFailure.of(stall(2, 0));
        assertEquals(RankFailure.Reason.STALL, stalled.reason());
        assertEquals(2, stalled.rank());
        assertTrue(stalled.report().isPresent());
        assertEquals(stalled, readBack(stalled));
        RankFailure own = RankFailure.of(new IllegalStateException("100 % broken;\nsecond line"));
        assertEquals("100 % broken;", own.message());
        assertEquals(own, readBack(own));
        assertEquals(5, own.ofRank(5).rank());
    }

    private RankFailure readBack(RankFailure end) throws IOException {
        RecordBytes.write(end, RankFailure.FILE.path(folder, 0));
        return RankFailure.FILE.readable(folder, 0).orElseThrow();
    }

    @Test
    void everyErrorHasItsKind() {
        assertEquals(
                RankFailure.Reason.PEER_FAILED,
                RankFailure.of(new PeerFailedException(0, 1, "x")).reason());
        assertEquals(
                RankFailure.Reason.LOST,
                RankFailure.of(new PeerLostException(0, 1, "died", "x")).reason());
        StallException thrown = stall(0, 1);
        thrown.addSuppressed(new PeerFailedException(2, 1, "x"));
        thrown.addSuppressed(new IllegalStateException("not a rank's"));
        List<RankFailure> all = RankFailure.allOf(thrown);
        assertEquals(List.of(0, 2), all.stream().map(RankFailure::rank).toList());
    }

    @Test
    void nonsenseIsLeftOutWhereverItEnds() throws Exception {
        byte[] whole = RecordBytes.of(RankFailure.of(stall(2, 0)));
        Path file = RankFailure.FILE.path(folder, 0);
        for (int length = 0; length < whole.length; length++) {
            PrivateFiles.write(file, Arrays.copyOf(whole, length));
            assertEquals(Optional.empty(), RankFailure.FILE.readable(folder, 0), "" + length);
        }
        whole[4] = 9;
        PrivateFiles.write(file, whole);
        assertEquals(Optional.empty(), RankFailure.FILE.readable(folder, 0), "no such reason");
        assertEquals(Optional.empty(), RankFailure.FILE.readable(folder, 1));
    }

    /** Lines of several ranks, mixed, with a launcher's own words before them. */
    @Test
    void piecesComeTogetherInAnyOrder() {
        List<FailureReport.Peer> peers = new ArrayList<>();
        for (int r = 1; r < 300; r++) {
            peers.add(new FailureReport.Peer(r, FailureReport.State.PRESENT, r, 1000 + r, -1));
        }
        StallException large = stall(0, 1);
        large.attach(FailureReport.of(0, List.of(), peers));
        List<RankFailure> ends = List.of(RankFailure.of(large), RankFailure.of(stall(1, 0)));
        List<String> lines = new ArrayList<>();
        ends.forEach(
                end ->
                        RankLines.of(end.rank(), end)
                                .forEach(line -> lines.add("[1,0]<stderr>:" + line)));
        assertTrue(lines.size() > 4);
        long seed = 3;
        Collections.shuffle(lines, new Random(seed));
        RankLines pieces = lines();
        lines.forEach(line -> assertTrue(line.length() < 1000 && pieces.take(line), line));
        assertEquals(ends, List.copyOf(told.values()), "seed " + seed);
    }

    @Test
    void aMissingPieceAndOtherLinesAreLeftOut() {
        List<String> lines = RankLines.of(1, RankFailure.of(stall(1, 0)));
        RankLines pieces = lines();
        assertTrue(pieces.take(lines.getFirst().replace(" 0 1 ", " 0 2 ")));
        assertFalse(pieces.take("weft: rank 0: no progress"));
        assertFalse(pieces.take("weft-rank"));
        assertFalse(pieces.take("weft-rank 1 RankFailure 2"));
        assertFalse(pieces.take("weft-rank 7 RankFailure -1 1 text"));
        assertFalse(pieces.take("weft-rank 7 RankFailure 1 1 text"));
        assertFalse(pieces.take("weft-rank 8 RankFailure 0 9999 text"));
        assertFalse(pieces.take("weft-rank 8 Other 0 1 text"));
        assertFalse(pieces.take("weft-rank 8 RankFailure 0 1 text"));
        assertEquals(Map.of(), told);
    }

    @Test
    void theTableHasARowForEachRank() {
        FailureReport report =
                new FailureReport(
                        0,
                        "w-1",
                        9,
                        List.of(
                                new FailureReport.Wait("compute-0", "chunk", 0, 2, 1, 9, 900),
                                new FailureReport.Wait("lane-0", "the shard", 2, 2, -1, 9, 800)),
                        List.of(
                                new FailureReport.Received(1, 4, 4, 3, -1),
                                new FailureReport.Received(2, 1, 4, 0, 1)),
                        List.of(
                                new FailureReport.Sent(
                                        "lane-0",
                                        5,
                                        8,
                                        new FailureReport.Run("chunk", 2, 0, 2, 0, 0),
                                        List.of())),
                        List.of(
                                new FailureReport.Peer(1, FailureReport.State.PRESENT, 9, 12, -1),
                                new FailureReport.Peer(2, FailureReport.State.DEAD, 8, 890, -1)));
        List<RankFailure> ends =
                List.of(new RankFailure(0, RankFailure.Reason.LOST, "m", Optional.of(report)));
        List<String> lines =
                FailureTable.lines(
                        3, ends, Map.of(2, new FailureDiagnosis.ProcessEnd(true, "was killed")));
        assertEquals(4, lines.size());
        assertTrue(lines.getFirst().startsWith("rank  call  end"), lines.getFirst());
        String row = lines.get(1);
        for (String cell :
                List.of(
                        "lost a peer",
                        "lane-0: the shard of rank 2 (number 9) from rank 2",
                        "800",
                        "chunk 1 of rank 2 (1/4)",
                        "lane-0 5/8: chunk 0 of rank 2 to rank 0",
                        "rank 2 dead, rank 1 12 ms")) {
            assertTrue(row.contains(cell), row);
        }
        assertTrue(lines.get(2).contains("said nothing"), lines.get(2));
        assertTrue(lines.get(3).contains("was killed"), lines.get(3));
        assertEquals(3, FailureTable.ranks(ends));
    }

    /** What the command prints when a run ends so. */
    private static List<String> printed(RuntimeException failure) {
        StringWriter err = new StringWriter();
        Callable<Integer> run =
                () -> {
                    throw failure;
                };
        int code =
                new CommandLine(CommandLine.Model.CommandSpec.wrapWithoutInspection(run))
                        .setExecutionExceptionHandler(
                                Main.commandLine().getExecutionExceptionHandler())
                        .setErr(new PrintWriter(err))
                        .execute();
        assertEquals(ExitCode.FAILED, code);
        return err.toString().lines().toList();
    }

    @Test
    void threadsAreCompared() {
        StallException thrown = stall(0, 2);
        thrown.addSuppressed(stall(1, 2));
        List<String> lines = printed(thrown);
        assertEquals(
                "weft: rank 2 hangs: it gave no sign of life; ranks 0 and 1 wait for it (the"
                        + " arrival of rank 2)",
                lines.getFirst());
        assertEquals(5, lines.size(), "a head and three rows: " + lines);
    }

    @Test
    void aRankThatNobodyHereHasStartedTellsItsOwnSituation() {
        List<String> lines = printed(stall(1, 2));
        assertTrue(lines.getFirst().startsWith("weft: rank 1: no progress"), lines.getFirst());
        assertEquals(stall(1, 2).report().orElseThrow().table().lines().toList(), tail(lines));
    }

    @Test
    void detailsOfAFailedRunFollowItsLine() {
        assertEquals(
                List.of("weft: so it ended", "a", "b"),
                printed(new RunFailedException("so it ended", List.of("a", "b"))));
        assertEquals(List.of("weft: so"), printed(new RunFailedException("so")));
    }

    private static List<String> tail(List<String> lines) {
        return lines.subList(1, lines.size());
    }
}
