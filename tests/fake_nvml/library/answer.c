/* From a key to the caller's memory. */
#include <stdlib.h>
#include <string.h>

#include "fake.h"

const char *pick(const Gpu *gpu, const char *function, const char *key) {
    return !key || (gpu->replayed && table_find(&gpu->table, function)) ? function : key;
}

nvmlReturn_t read_u64(const Gpu *gpu, const char *key, uint64_t *out) {
    const Value *value = find(gpu, key);
    if (!value) return NOT_SUPPORTED;
    if (value->kind == ERROR) return value->code;
    *out = whole_at(value, gpu, elapsed());
    return SUCCESS;
}

nvmlReturn_t read_u32(const Gpu *gpu, const char *key, unsigned *out) {
    uint64_t wide = 0;
    nvmlReturn_t status = read_u64(gpu, key, &wide);
    if (!status) *out = (unsigned)wide; /* a 32-bit counter wraps here, as the real ones do */
    return status;
}

nvmlReturn_t read_pair(const Gpu *gpu, const char *first, const char *second, unsigned *a, unsigned *b) {
    nvmlReturn_t status = read_u32(gpu, first, a);
    return status ? status : read_u32(gpu, second, b);
}

unsigned read_or(const Gpu *gpu, const char *key, unsigned otherwise) {
    unsigned value;
    return table_find(&gpu->table, key) && !read_u32(gpu, key, &value) ? value : otherwise;
}

nvmlReturn_t copy_text(const char *text, size_t length, char *out, unsigned size) {
    if (length + 1 > size) return INSUFFICIENT_SIZE;
    memcpy(out, text, length);
    out[length] = 0;
    return SUCCESS;
}

nvmlReturn_t read_text(const Gpu *gpu, const char *key, char *out, unsigned size) {
    const Value *value = table_find(&gpu->table, key); /* `every` is a number: no answer for a text */
    if (!value) return NOT_SUPPORTED;
    if (value->kind == ERROR) return value->code;
    return copy_text(value->text, value->length, out, size);
}

nvmlReturn_t read_list(const Gpu *gpu, const char *key, unsigned *count, unsigned *out) {
    const Value *value = table_find(&gpu->table, key);
    unsigned found = 0;
    if (!value) return NOT_SUPPORTED;
    if (value->kind == ERROR) return value->code;
    for (const char *text = value->text; *text;) {
        char *end;
        unsigned number = (unsigned)strtoul(text, &end, 0);
        if (end == text) { text++; continue; }
        if (out && found < *count) out[found] = number;
        found++;
        text = end;
    }
    bool fits = found <= *count && (out || !found);
    *count = found;
    return fits ? SUCCESS : INSUFFICIENT_SIZE;
}
