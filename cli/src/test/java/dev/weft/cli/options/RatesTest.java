package dev.weft.cli.options;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RatesTest {

    @ParameterizedTest
    @CsvSource({
        "500kbit, 500e3, 500kbit",
        "1234kbit, 1234e3, 1230kbit",
        "268mbit, 268e6, 268mbit",
        "1000mbit, 1e9, 1gbit",
        "12345mbit, 12345e6, 12300mbit",
        "1000gbit, 1e12, 1000gbit",
        "1kbit, 1e3, 1kbit"
    })
    void ratesAreReadAndToldWithThreeDigits(String text, double bitsPerSecond, String told) {
        assertEquals(bitsPerSecond, (double) new Rates().convert(text));
        assertEquals(told, Rates.text(bitsPerSecond));
    }
}
