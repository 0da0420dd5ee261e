/* The least work of any reader: follow the records of a log, and look at nothing but their sizes. */
#include <stdint.h>
#include <string.h>

static uint32_t u32(const unsigned char *b) { uint32_t v; memcpy(&v, b, 4); return v; }
static uint64_t u64(const unsigned char *b) { uint64_t v; memcpy(&v, b, 8); return v; }

int64_t walk_ulog(const unsigned char *b, int64_t end) {
    int64_t pos = 16, n = 0;
    while (end - pos >= 3) {
        n += b[pos + 2] == 'D';
        pos += 3 + (b[pos] | b[pos + 1] << 8);
    }
    return n;
}

int64_t walk_rosbag(const unsigned char *b, int64_t end) {
    int64_t pos = 13, n = 0;
    while (end - pos >= 8) {
        int64_t head = pos + 4, after = head + u32(b + pos);
        int op = 0, plain = 0;
        if (after + 4 > end) break;
        while (head + 4 < after) {
            uint32_t size = u32(b + head);
            if (size == 4 && !memcmp(b + head + 4, "op=", 3)) op = b[head + 7];
            if (size == 16 && !memcmp(b + head + 4, "compression=none", 16)) plain = 1;
            head += 4 + size;
        }
        n += op == 2;
        pos = after + 4 + (op == 5 && plain ? 0 : u32(b + after));
    }
    return n;
}

int64_t walk_mcap(const unsigned char *b, int64_t end) {
    int64_t pos = 8, n = 0;
    while (end - pos >= 9) {
        int op = b[pos];
        n += op == 5;
        if (op == 6 && u32(b + pos + 37) == 0) pos += 49; /* into an uncompressed chunk */
        else pos += 9 + u64(b + pos + 1);
    }
    return n;
}

int64_t walk_bddf(const unsigned char *b, int64_t end) {
    int64_t pos = 4, n = 0;
    while (end - pos >= 12) {
        __builtin_prefetch(b + pos + 1024);
        uint64_t w = u64(b + pos);
        int64_t size = w & 0xFFFFFFFFFFFFFF;
        if (w >> 56 == 2 || size > end - pos - 12) break;
        n += w >> 56 == 0;
        pos += size + (w >> 56 == 0 ? 12 : 8);
    }
    return n;
}

int64_t walk_koblenz(const unsigned char *b, int64_t end) {
    int64_t pos = 12, n = 0;
    while (end - pos >= 21) {
        uint32_t size = u32(b + pos);
        if (size < 17 || size > end - pos - 4) break;
        n += b[pos + 4] == 0x49;
        pos += size + 4;
    }
    return n;
}

int64_t walk_carla(const unsigned char *b, int64_t end) {
    int64_t pos = 28 + (b[26] | b[27] << 8), n = 0;
    while (end - pos >= 5) {
        n += b[pos] == 0;
        pos += 5 + (int64_t)u32(b + pos + 1);
    }
    return n;
}
