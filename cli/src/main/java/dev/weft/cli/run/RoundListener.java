package dev.weft.cli.run;

/** Told what a rank has measured so far, a few times a second at most. */
@FunctionalInterface
interface RoundListener {

    void round(int rank, RankReport soFar);
}
