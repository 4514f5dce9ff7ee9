package dev.weft.bench;

import java.nio.file.Path;

/**
 * What every case is told.
 *
 * @param quick smaller problems and fewer rounds: shows that the bench works, not how fast Weft is
 * @param cores cores to use at most
 * @param folder an empty folder of this run's own, removed afterwards
 */
record BenchSettings(boolean quick, int cores, Path folder) {}
