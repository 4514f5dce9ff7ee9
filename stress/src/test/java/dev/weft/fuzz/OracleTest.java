package dev.weft.fuzz;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.EOFException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What is a finding and what is not, shown on readers that are wrong on purpose. */
class OracleTest {

    private static final byte[] INPUT = {1, 2, 3};

    private static Verdict judged(Target.Reader reader) {
        return new Oracle(true).judge(new Target("toy", List.of(INPUT), reader), INPUT);
    }

    private static void assertFound(String problem, Target.Reader reader) {
        Verdict verdict = judged(reader);
        assertTrue(verdict.isFinding());
        assertTrue(verdict.problem().contains(problem), verdict.problem());
        assertEquals(1, verdict.problem().lines().count(), verdict.problem());
    }

    @Test
    void anInputIsReadOrRefusedInOneLine() {
        assertEquals(new Verdict(true, "accepted 2", null), judged(input -> input.length));
        Verdict refused =
                judged(
                        input -> {
                            throw new IllegalArgumentException("three bytes: expected four");
                        });
        assertFalse(refused.accepted());
        assertFalse(refused.isFinding(), refused.problem());
    }

    @Test
    void exceptionsThatNobodyPromisedAreFound() {
        assertFound("NumberFormatException", input -> Long.parseLong("x"));
        assertFound("IndexOutOfBounds", input -> input[input.length]);
        assertFound("StackOverflowError", OracleTest::forEver);
        assertFound("NegativeArraySize", input -> new byte[-input.length].length);
    }

    private static long forEver(byte[] input) throws Exception {
        return 1 + forEver(input);
    }

    @Test
    void messagesThatAreNoLineAreFound() {
        assertFound(
                "no message",
                input -> {
                    throw new EOFException();
                });
        assertFound(
                "several lines",
                input -> {
                    throw new IllegalArgumentException("one\ntwo");
                });
        assertFound(
                "5000 characters",
                input -> {
                    throw new IllegalArgumentException("x".repeat(5000));
                });
    }

    @Test
    void memoryThatTheInputCannotJustifyIsFound() {
        assertFound("allocated for an input of 3", input -> new byte[1 << 22].length & 1);
        assertFound("1099511627776 bytes mapped", input -> 1L << 40);
        assertFalse(judged(input -> new byte[1 << 18].length & 1).isFinding());
    }

    @Test
    void aSeedThatIsRefusedIsTheFuzzersOwnMistake() {
        Target target =
                new Target(
                        "toy",
                        List.of(INPUT),
                        input -> {
                            throw new IllegalArgumentException("never");
                        });
        IllegalStateException e =
                assertThrows(
                        IllegalStateException.class,
                        () -> Fuzzer.run(target, 1, done -> done < 10));
        assertTrue(e.getMessage().contains("a seed is not accepted"), e.getMessage());
    }

    @Test
    void equalFindingsAreKeptOnce() throws InterruptedException {
        Target target =
                new Target(
                        "toy",
                        List.of(INPUT),
                        input -> input.length == 3 && input[0] == 1 ? 1 : input[input.length]);
        Fuzzer.Result result = Fuzzer.run(target, 1, done -> done < 500);
        assertEquals(500, result.inputs());
        assertEquals(1, result.findings().size());
        assertEquals("toy", result.findings().getFirst().target());
        assertTrue(result.accepted() > 0 && result.refused() > 0, result.toString());
    }
}
