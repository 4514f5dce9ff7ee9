package dev.weft.bench.measure;

import java.util.ArrayList;
import java.util.List;

/** What a case has opened; the last one is closed first. Used by one thread. */
public final class Resources implements AutoCloseable {

    private final List<AutoCloseable> opened = new ArrayList<>();

    public <T extends AutoCloseable> T add(T resource) {
        opened.add(resource);
        return resource;
    }

    /** All of them, whatever one of them throws; then throws that. */
    @Override
    public void close() {
        RuntimeException failure = null;
        for (AutoCloseable resource : opened.reversed()) {
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

    /** Closes them when {@code failure} has come, which stays the one that is told. */
    public void closeAfter(Throwable failure) {
        try {
            close();
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
    }
}
