package dev.weft.bench;

import java.util.List;

/** Closes what a case has opened. */
final class Cleanup {

    private Cleanup() {}

    /** All of them, in this order, whatever one of them throws; then throws that. */
    static void closeAll(List<? extends AutoCloseable> resources) {
        RuntimeException failure = null;
        for (AutoCloseable resource : resources) {
            try {
                resource.close();
            } catch (Exception e) {
                if (failure == null) {
                    failure = new IllegalStateException("cannot close " + resource, e);
                } else {
                    failure.addSuppressed(e);
                }
            }
        }
        if (failure != null) {
            throw failure;
        }
    }
}
