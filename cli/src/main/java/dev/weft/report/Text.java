package dev.weft.report;

import java.util.Locale;

/** Numbers for people to read, independent of the user's language. */
public final class Text {

    private Text() {}

    public static String text(String form, Object... values) {
        return String.format(Locale.ROOT, form, values);
    }

    static String time(double ns) {
        if (ns >= 1e9) {
            return text("%.3f s", ns / 1e9);
        }
        return ns >= 1e6 ? text("%.3f ms", ns / 1e6) : text("%.1f us", ns / 1e3);
    }

    public static String bytes(double bytes) {
        String[] units = {"B", "KiB", "MiB", "GiB", "TiB"};
        int unit = 0;
        while (bytes >= 1024 && unit < units.length - 1) {
            bytes /= 1024;
            unit++;
        }
        return text(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    }
}
