package dev.weft.fabric;

class ShmFabricTest extends FabricContract {

    @Override
    RankRunner runner() {
        return RankRunner.sharedMemory();
    }
}
