package dev.weft.fabric;

class ThreadFabricTest extends FabricContract {

    @Override
    RankRunner runner() {
        return RankRunner.threads();
    }
}
