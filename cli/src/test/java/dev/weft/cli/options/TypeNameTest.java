package dev.weft.cli.options;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.cli.Invocation;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TypeNameTest {

    /** As NumPy and PyTorch call them, in records as Weft calls them. */
    @ParameterizedTest
    @CsvSource({
        "--dtype, float32, fp32",
        "--dtype, float16, fp16",
        "--dtype, Half, fp16",
        "--a-dtype, bfloat16, bf16",
        "--b-dtype, bfloat16, bf16",
        "--out-dtype, half, fp16",
        "--out-dtype, BF16, bf16"
    })
    void otherNamesOfTypesAreKnown(String option, String name, String label) {
        String words = "run -r sim -v cpu-1gbe -n 2 --gm 64 --gk 64 --gn 64 --no-verify --json - ";
        Invocation run = Invocation.ofWords(words + option + " " + name);
        assertEquals(0, run.code(), run.err());
        String field =
                switch (option) {
                    case "--out-dtype" -> "outDtype";
                    case "--b-dtype" -> "bDtype";
                    default -> "aDtype";
                };
        run.assertPrints("\"" + field + "\" : \"" + label + "\"");
    }
}
