package dev.weft.fabric;

class ShmFabricFailureTest extends FabricFailureContract {

    @Override
    RankRunner runner() {
        return RankRunner.sharedMemory();
    }
}
