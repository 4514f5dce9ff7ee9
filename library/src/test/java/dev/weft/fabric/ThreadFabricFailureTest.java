package dev.weft.fabric;

class ThreadFabricFailureTest extends FabricFailureContract {

    @Override
    RankRunner runner() {
        return RankRunner.threads();
    }
}
