package dev.weft.report;

import java.util.Locale;

/** Numbers as people read them, the same in every language of the user's. */
final class Text {

    private Text() {}

    static String of(String form, Object... values) {
        return String.format(Locale.ROOT, form, values);
    }

    static String time(double ns) {
        if (ns >= 1e9) {
            return of("%.3f s", ns / 1e9);
        }
        return ns >= 1e6 ? of("%.3f ms", ns / 1e6) : of("%.1f us", ns / 1e3);
    }

    static String bytes(double bytes) {
        String[] units = {"B", "KiB", "MiB", "GiB", "TiB"};
        int unit = 0;
        while (bytes >= 1024 && unit < units.length - 1) {
            bytes /= 1024;
            unit++;
        }
        return of(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    }
}
