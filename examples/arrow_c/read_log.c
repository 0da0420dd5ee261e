/* Reads a channel of a log through Arrow's C data interface: prints rows, and name, type and mean of each column.
 *
 * logreel decodes; this library only gets a pointer to an ArrowArrayStream (the structs below, which the Arrow
 * specification fixes). There is nothing to link: neither Arrow nor Python. See README.md for both ways to call it.
 *
 *     gcc -O2 -Wall -Wextra -shared -fPIC read_log.c -o libread_log.so
 *     g++ -x c++ -O2 -Wall -Wextra -shared -fPIC read_log.c -o libread_log.so
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The structs of the Arrow C data interface and C stream interface, as their specification states them. */
struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

enum { MOST_LEAVES = 1024 };

struct total {
    double sum;
    int64_t rows;
};

static int is_valid(const struct ArrowArray *column, int64_t row) {
    const uint8_t *bits = (const uint8_t *)(column->n_buffers ? column->buffers[0] : NULL);
    return !bits || (bits[row >> 3] >> (row & 7) & 1);
}

/* Puts the number at a row, offset included, into *value; returns 0 for types that are no numbers. Times are int64 ns. */
static int number_at(const char *format, const void *data, int64_t row, double *value) {
    switch (format[0]) {
    case 'c': *value = ((const int8_t *)data)[row]; return 1;
    case 'C': *value = ((const uint8_t *)data)[row]; return 1;
    case 's': *value = ((const int16_t *)data)[row]; return 1;
    case 'S': *value = ((const uint16_t *)data)[row]; return 1;
    case 'i': *value = ((const int32_t *)data)[row]; return 1;
    case 'I': *value = ((const uint32_t *)data)[row]; return 1;
    case 'l': *value = (double)((const int64_t *)data)[row]; return 1;
    case 'L': *value = (double)((const uint64_t *)data)[row]; return 1;
    case 'f': *value = ((const float *)data)[row]; return 1;
    case 'g': *value = ((const double *)data)[row]; return 1;
    case 't': /* timestamps and durations are 64 bits wide */
        if (format[1] != 's' && format[1] != 'D') return 0;
        *value = (double)((const int64_t *)data)[row];
        return 1;
    default: return 0;
    }
}

/* Adds a column to the totals of its leaves, from *leaf on; members of structs are leaves. Rows of the parent begin at
 * first. A struct that is null has members that are null, too, as logreel writes them. */
static void add_column(struct total *totals, int *leaf, const struct ArrowSchema *schema, const struct ArrowArray *column,
                       int64_t first, int64_t rows) {
    first += column->offset;
    if (strcmp(schema->format, "+s") == 0) {
        for (int64_t c = 0; c < schema->n_children; c++)
            add_column(totals, leaf, schema->children[c], column->children[c], first, rows);
        return;
    }
    if (*leaf >= MOST_LEAVES) return;
    struct total *total = &totals[(*leaf)++];
    /* Numbers have two buffers: validity and values. */
    const void *data = column->n_buffers == 2 && !schema->dictionary ? column->buffers[1] : NULL;
    double value;
    for (int64_t row = first; data && row < first + rows; row++) {
        if (is_valid(column, row) && number_at(schema->format, data, row, &value)) {
            total->sum += value;
            total->rows++;
        }
    }
}

static void print_column(const struct total *totals, int *leaf, const struct ArrowSchema *schema, const char *parent) {
    char path[512];
    snprintf(path, sizeof path, "%s%s%s", parent, *parent ? "." : "", schema->name);
    if (strcmp(schema->format, "+s") == 0) {
        for (int64_t c = 0; c < schema->n_children; c++) print_column(totals, leaf, schema->children[c], path);
        return;
    }
    if (*leaf >= MOST_LEAVES) return;
    const struct total *total = &totals[(*leaf)++];
    printf("%s %s", path, schema->format);
    if (total->rows) printf(" mean %.17g of %" PRId64, total->sum / (double)total->rows, total->rows);
    putchar('\n');
}

#ifdef __cplusplus
extern "C"
#endif
/* Reads and releases the stream; returns 0, or a number of errno as the stream gives it. */
int read_log(struct ArrowArrayStream *stream) {
    struct ArrowSchema schema;
    struct ArrowArray batch;
    struct total totals[MOST_LEAVES];
    int64_t rows = 0;
    memset(&schema, 0, sizeof schema);
    memset(&batch, 0, sizeof batch);
    memset(totals, 0, sizeof totals);
    int error = stream->get_schema(stream, &schema);
    while (!error) {
        error = stream->get_next(stream, &batch);
        /* A batch without release function is the end. */
        if (error || !batch.release) break;
        int leaf = 0;
        for (int64_t c = 0; c < schema.n_children; c++)
            add_column(totals, &leaf, schema.children[c], batch.children[c], batch.offset, batch.length);
        rows += batch.length;
        batch.release(&batch);
        memset(&batch, 0, sizeof batch);
    }
    if (error) {
        const char *why = stream->get_last_error(stream);
        fprintf(stderr, "read_log: %s\n", why ? why : strerror(error));
    } else {
        printf("%" PRId64 " rows\n", rows);
        int leaf = 0;
        for (int64_t c = 0; c < schema.n_children; c++) print_column(totals, &leaf, schema.children[c], "");
    }
    fflush(stdout);
    if (schema.release) schema.release(&schema);
    stream->release(stream);
    return error;
}
