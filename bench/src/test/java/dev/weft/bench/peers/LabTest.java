package dev.weft.bench.peers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LabTest {

    private static Optional<Lab> lab(String hosts) {
        return Lab.of(Map.of("WEFT_LAB_LINK", "link", "WEFT_LAB_HOSTS", hosts));
    }

    @Test
    void aLabIsFoundInTheEnvironment() {
        assertEquals(Optional.of(new Lab("link", 3)), lab("3"));
        assertEquals(Optional.empty(), Lab.of(Map.of("WEFT_LAB_HOSTS", "3")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "0", "-1", "x", "99999999999", "1\n2"})
    void hostsThatAreNoNumberAreRefusedInOneLine(String hosts) {
        String message =
                assertThrows(IllegalArgumentException.class, () -> lab(hosts)).getMessage();
        assertEquals(1, message.lines().count(), message);
    }
}
