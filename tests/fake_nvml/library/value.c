/* Text of a scenario value -> Value: numbers with units, waves, errors, bytes. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static const struct { const char *name; int code; } CODES[] = {
    {"SUCCESS", 0}, {"UNINITIALIZED", 1}, {"INVALID_ARGUMENT", 2}, {"NOT_SUPPORTED", 3}, {"NO_PERMISSION", 4},
    {"ALREADY_INITIALIZED", 5}, {"NOT_FOUND", 6}, {"INSUFFICIENT_SIZE", 7}, {"INSUFFICIENT_POWER", 8},
    {"DRIVER_NOT_LOADED", 9}, {"TIMEOUT", 10}, {"IRQ_ISSUE", 11}, {"LIBRARY_NOT_FOUND", 12},
    {"FUNCTION_NOT_FOUND", 13}, {"CORRUPTED_INFOROM", 14}, {"GPU_IS_LOST", 15}, {"RESET_REQUIRED", 16},
    {"OPERATING_SYSTEM", 17}, {"LIB_RM_VERSION_MISMATCH", 18}, {"IN_USE", 19}, {"MEMORY", 20}, {"NO_DATA", 21},
    {"VGPU_ECC_NOT_SUPPORTED", 22}, {"INSUFFICIENT_RESOURCES", 23}, {"FREQ_NOT_SUPPORTED", 24},
    {"ARGUMENT_VERSION_MISMATCH", 25}, {"DEPRECATED", 26}, {"NOT_READY", 27}, {"GPU_NOT_FOUND", 28},
    {"INVALID_STATE", 29}, {"RESET_TYPE_NOT_SUPPORTED", 30}, {"UNKNOWN", 999},
};

/* Each unit in the one NVML answers in: bytes, mW, MHz, C, microseconds. */
static const struct { const char *name; double factor; } UNITS[] = {
    {"", 1}, {"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"TiB", 1099511627776},
    {"mW", 1}, {"W", 1000}, {"mJ", 1}, {"J", 1000}, {"MHz", 1}, {"GHz", 1000}, {"C", 1}, {"%", 1},
    {"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"KB/s", 1}, {"MB/s", 1e3}, {"GB/s", 1e6},
};

static const struct { const char *name; Kind kind; int arguments; } WAVES[] = {
    {"sine", SINE, 3}, {"square", SQUARE, 3}, {"ramp", RAMP, 2}, {"counter", COUNTER, 2},
    {"follows", FOLLOWS, 2},
};

bool error_code(const char *word, int *code) {
    char *end;
    long number = strtol(word, &end, 0);
    if (end != word && !*end) return *code = (int)number, true;
    if (!strncmp(word, "NVML_ERROR_", 11)) word += 11;
    for (size_t i = 0; i < COUNT(CODES); i++)
        if (!strcmp(word, CODES[i].name)) return *code = CODES[i].code, true;
    return false;
}

double duration(const char *text) {
    char *end;
    double seconds = strtod(text, &end);
    while (isspace((unsigned char)*end)) end++;
    if (!strcmp(end, "ms")) return seconds / 1e3;
    if (!strcmp(end, "us")) return seconds / 1e6;
    return !*end || !strcmp(end, "s") ? seconds : NAN;
}

static bool unit(const char *text, double *factor) {
    while (isspace((unsigned char)*text)) text++;
    for (size_t i = 0; i < COUNT(UNITS); i++)
        if (!strcmp(text, UNITS[i].name)) return *factor = UNITS[i].factor, true;
    return false;
}

static bool number(const char *source, Value *value) {
    char *end, *whole_end;
    double factor, real = strtod(source, &end);
    if (end == source || isalpha((unsigned char)*source) || !unit(end, &factor)) return false;
    uint64_t whole = *source == '-' ? (uint64_t)strtoll(source, &whole_end, 0) : strtoull(source, &whole_end, 0);
    value->kind = NUMBER;
    value->a = real * factor;
    value->exact = whole_end == end || value->a == floor(value->a);
    if (whole_end == end) value->whole = whole * (uint64_t)factor;
    else value->whole = value->a < 0 ? (uint64_t)(int64_t)value->a : (uint64_t)value->a;
    return true;
}

/* "t:v, t:v": the last point at or before now counts. */
static bool steps(char *arguments, Value *value) {
    for (char *save, *item = strtok_r(arguments, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        char *colon = strchr(item, ':');
        Value step = {0};
        if (!colon) return false;
        *colon++ = 0;
        while (isspace((unsigned char)*colon)) colon++;
        while (isspace((unsigned char)*item)) item++;
        for (char *end = colon + strlen(colon); end > colon && isspace((unsigned char)end[-1]);) *--end = 0;
        double time = duration(item);
        if (isnan(time) || !number(colon, &step)) return false;
        value->points = realloc(value->points, sizeof(Point) * (size_t)(value->count + 1));
        value->points[value->count++] = (Point){time, step.a};
    }
    value->kind = STEPS;
    return value->count > 0;
}

static bool wave(const char *source, Value *value) {
    char name[16], arguments[1024];
    if (sscanf(source, "%15[a-z](%1023[^)])", name, arguments) != 2) return false;
    if (!strcmp(name, "steps")) return steps(arguments, value);
    if (!strcmp(name, "integral")) { /* integral(key): what that key adds up to since load, as energy does for power */
        value->kind = INTEGRAL;
        return true;
    }
    double *slots[] = {&value->a, &value->b, &value->c};
    for (size_t i = 0; i < COUNT(WAVES); i++) {
        if (strcmp(name, WAVES[i].name)) continue;
        int n = 0;
        for (char *save, *item = strtok_r(arguments, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
            Value part = {0};
            while (isspace((unsigned char)*item)) item++;
            bool period = n == 2; /* a time, not a reading */
            if (n == 3 || !(period ? !isnan(part.a = duration(item)) : number(item, &part))) return false;
            if (n == 0) value->whole = part.whole;
            *slots[n++] = part.a;
        }
        value->kind = WAVES[i].kind;
        return n == WAVES[i].arguments && !(n == 3 && value->c <= 0);
    }
    return false;
}

/* Resolves \xNN, \n, \t, \e, \\ and \" in place; a NUL byte ends the text for every client anyway. */
static size_t unescape(char *text) {
    char *out = text;
    for (char *in = text; *in; in++) {
        unsigned byte;
        if (*in != '\\' || !in[1]) { *out++ = *in; continue; }
        in++;
        if (*in == 'x' && sscanf(in + 1, "%2x", &byte) == 1) { *out++ = (char)byte; in += 2; }
        else *out++ = *in == 'n' ? '\n' : *in == 't' ? '\t' : *in == 'e' ? '\033' : *in;
    }
    *out = 0;
    return (size_t)(out - text);
}

bool value_parse(const char *source, Value *value) {
    *value = (Value){0};
    size_t length = strlen(source);
    bool quoted = length >= 2 && *source == '"' && source[length - 1] == '"';
    value->text = quoted ? strndup(source + 1, length - 2) : strdup(source);
    value->length = unescape(value->text);
    value->kind = TEXT;
    if (quoted || number(source, value)) return true;
    if (!strcmp(source, "unavailable")) return value->kind = ALL_ONES, true;
    if (!strcmp(source, "yes") || !strcmp(source, "on")) return number("1", value);
    if (!strcmp(source, "no") || !strcmp(source, "off")) return number("0", value);
    if (!strncmp(source, "error ", 6)) return value->kind = ERROR, error_code(source + 6, &value->code);
    const char *open = strchr(source, '(');
    for (size_t i = 0; open && i < COUNT(WAVES) + 2; i++) {
        const char *name = i < COUNT(WAVES) ? WAVES[i].name : i == COUNT(WAVES) ? "steps" : "integral";
        if ((size_t)(open - source) == strlen(name) && !strncmp(source, name, strlen(name))) return wave(source, value);
    }
    return true;
}
