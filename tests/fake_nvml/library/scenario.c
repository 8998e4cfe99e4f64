/* Reads the scenario file into tables; what a section's lines mean is in section.c. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

Scenario scenario;

static int by_key(const void *a, const void *b) {
    return strcmp(((const Entry *)a)->key, ((const Entry *)b)->key);
}

const Value *table_find(const Table *table, const char *key) {
    Entry wanted = {.key = (char *)(uintptr_t)key};
    Entry *entry = table->count ? bsearch(&wanted, table->entries, (size_t)table->count, sizeof wanted, by_key) : NULL;
    return entry ? &entry->value : NULL;
}

/* The slot for a key, new or already there; the table stays sorted. */
Value *table_put(Table *table, const char *key) {
    int at = table->count;
    while (at > 0 && strcmp(table->entries[at - 1].key, key) >= 0) at--;
    if (at < table->count && !strcmp(table->entries[at].key, key)) return &table->entries[at].value;
    table->entries = realloc(table->entries, sizeof(Entry) * (size_t)(table->count + 1));
    memmove(table->entries + at + 1, table->entries + at, sizeof(Entry) * (size_t)(table->count - at));
    table->count++;
    table->entries[at] = (Entry){.key = strdup(key)};
    return &table->entries[at].value;
}

const Value *find(const Gpu *gpu, const char *key) {
    const Value *value = table_find(&gpu->table, key);
    return value ? value : gpu->every;
}

/* "3", "0-7" or "all". */
bool range_parse(const char *text, int *first, int *last) {
    int used = 0;
    if (!strcmp(text, "all")) return *first = 0, *last = MAX_GPUS - 1, true;
    if (sscanf(text, "%d-%d%n", first, last, &used) != 2 || text[used]) {
        if (sscanf(text, "%d%n", first, &used) != 1 || text[used]) return false;
        *last = *first;
    }
    return *first >= 0 && *last < MAX_GPUS && *first <= *last;
}

static char *trim(char *text) {
    while (isspace((unsigned char)*text)) text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1])) *--end = 0;
    return text;
}

/* A comment starts at a # that begins a word, outside quotes. */
static void cut_comment(char *line) {
    bool quoted = false;
    for (char *c = line; *c; c++) {
        if (*c == '\\' && c[1]) c++;
        else if (*c == '"') quoted = !quoted;
        else if (*c == '#' && !quoted && (c == line || isspace((unsigned char)c[-1]))) { *c = 0; return; }
    }
}

static const char *read_line(char *line) {
    cut_comment(line);
    line = trim(line);
    if (!*line) return NULL;
    size_t length = strlen(line);
    if (*line == '[' && line[length - 1] == ']') {
        line[length - 1] = 0;
        return section_open(trim(line + 1)) ? NULL : "no such section";
    }
    char *equals = strchr(line, '=');
    if (!equals) return "expected key = value";
    *equals = 0;
    return section_set(trim(line), trim(equals + 1));
}

void scenario_load(const char *path) {
    char line[4096];
    int number = 0;
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file) {
        fprintf(stderr, "fake_nvml: %s: %s\n", path ? path : "FAKE_NVML_SCENARIO", path ? strerror(errno) : "not set");
        return;
    }
    scenario.loaded = true;
    while (fgets(line, sizeof line, file)) {
        number++;
        const char *complaint = read_line(line);
        if (!complaint) continue;
        fprintf(stderr, "fake_nvml: %s:%d: %s\n", path, number, complaint);
        scenario.loaded = false;
    }
    fclose(file);
    section_finish();
}

__attribute__((constructor(102))) static void load(void) { scenario_load(getenv("FAKE_NVML_SCENARIO")); }
