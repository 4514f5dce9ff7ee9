package dev.weft.report.browser;

import java.io.IOException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/** Tests that share one browser. */
abstract class InChromium {

    static Chromium chromium;

    @BeforeAll
    static void startBrowser() throws IOException {
        chromium = Chromium.start();
    }

    @AfterAll
    static void closeBrowser() throws IOException {
        if (chromium != null) {
            chromium.close();
        }
    }
}
