module consumer {
    requires dev.weft;
}
