package dev.weft.tensor;

import java.lang.foreign.MemorySegment;

/** The patterns of {@link BlockType#IQ2_XXS}, which are a part of the format. Thread-safe. */
final class Iq2Grid {

    /** 256 patterns of 4 digits: two bits for each of 8 magnitudes, the first one lowest. */
    private static final String PATTERNS =
            "0000000200050008000a00110014002000220028002a00410044005000580061"
                    + "006400800082008a00a201010104011001150140018401980200020202220282"
                    + "04010404041004210424044004420448046004810484049004a4050005020508"
                    + "05200546056905800591060906100640068406a4080008050808081408280841"
                    + "0844085008520888090409400a020a1410011004101010211040106010841090"
                    + "10951100110811201150115a1180122412451400140814201425144914801518"
                    + "156216001616180118041810184018811900190519a01a5120002002200a2044"
                    + "2061208020822129214822002202240124042410244024562500254125642690"
                    + "2808282028942a44400140044010401840214024404040484056406040814084"
                    + "4090410041204161418041854201421042484256426844004408442044804499"
                    + "4512452446004801480448104840484549004958496149824a454a9050005008"
                    + "501150195020508050885104514251a4529154905492550a5601565458005811"
                    + "5819586459405a08600460106040606861006155621862606400640565106512"
                    + "6584684280008002800a80418082810481188140821184018404841084158440"
                    + "8460850085468594860986408660880289048a11900490109024904090a19116"
                    + "91809245940094229444955198819920a002a050a085a109a200a418a850a904";

    private static final int[] MAGNITUDES = {8, 25, 43};

    private Iq2Grid() {}

    /** As {@link BlockType#decode}. */
    static void decode(MemorySegment data, long from, float[] to, int at) {
        float d = BlockType.half(data, from);
        for (int i = 0; i < BlockType.IQ2_XXS.elements(); i++) {
            long group = from + 2 + i / 32 * 8L;
            int signs = data.get(DType.INT, group + 4);
            float scale = d * (0.5f + (signs >>> 28)) * 0.25f;
            int digits = BlockType.at(data, group + i % 32 / 8) * 4;
            int pattern = Integer.parseInt(PATTERNS, digits, digits + 4, 16);
            int seven = signs >>> i % 32 / 8 * 7 & 127;
            // The eighth sign makes their number even.
            int eight = seven | Integer.bitCount(seven) << 7;
            int magnitude = MAGNITUDES[pattern >> i % 8 * 2 & 3];
            to[at + i] = scale * ((eight >> i % 8 & 1) == 0 ? magnitude : -magnitude);
        }
    }
}
