/* Values over time, and the clock they follow. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"

static double started;
static volatile const double *test_clock; /* a test that sets the time itself need not sleep */

/* What a program does, as it says itself: how many points there are, then the time (monotonic) and the level (0-1) of each. */
static volatile const double *work;

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const double *shared(const char *path) {
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return NULL;
    off_t size = lseek(file, 0, SEEK_END);
    void *pages = size >= (off_t)sizeof(double) ? mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    return pages == MAP_FAILED ? NULL : pages;
}

/* Runs before any other constructor of this library: faults and waves count from here. */
__attribute__((constructor(101))) static void start_clock(void) {
    started = seconds(CLOCK_MONOTONIC);
    test_clock = shared(getenv("FAKE_NVML_CLOCK"));
    work = shared(getenv("FAKE_NVML_WORK"));
}

double elapsed(void) { return test_clock ? *test_clock : seconds(CLOCK_MONOTONIC) - started; }

double wall_clock(void) { return seconds(CLOCK_REALTIME); }

/* The level of the program's work at a time since load, and the area under it. */
static double level_at(double time) {
    double level = 0;
    for (long i = 0, count = work ? (long)work[0] : 0; i < count && work[1 + 2 * i] - started <= time; i++) level = work[2 + 2 * i];
    return level;
}

static double worked(double time) {
    double sum = 0, from = 0, level = 0;
    for (long i = 0, count = work ? (long)work[0] : 0; i < count && work[1 + 2 * i] - started < time; i++) {
        double at = work[1 + 2 * i] - started;
        if (at > from) { sum += level * (at - from); from = at; }
        level = work[2 + 2 * i];
    }
    return sum + level * (time - from);
}

static double step_at(const Value *value, double time) {
    double now = value->points[0].value;
    for (int i = 0; i < value->count && value->points[i].time <= time; i++) now = value->points[i].value;
    return now;
}

/* The area under the wave from load to `time`: the mean of an interval is a difference of two. */
static double area(const Value *value, const Gpu *gpu, double time) {
    switch (value->kind) {
    case SINE: {
        double turn = 2 * M_PI / value->c;
        return value->a * time + value->b * (1 - cos(turn * time)) / turn;
    }
    case SQUARE: {
        double periods = floor(time / value->c), rest_of = time - periods * value->c, half = value->c / 2;
        double part = rest_of < half ? rest_of * value->a : half * value->a + (rest_of - half) * value->b;
        return periods * half * (value->a + value->b) + part;
    }
    case RAMP:
    case COUNTER: return value->a * time + value->b * time * time / 2;
    case STEPS: {
        double sum = 0, from = 0;
        for (int i = 0; i < value->count && value->points[i].time < time; i++) {
            if (value->points[i].time <= from) continue;
            sum += step_at(value, from) * (value->points[i].time - from);
            from = value->points[i].time;
        }
        return sum + step_at(value, from) * (time - from);
    }
    case FOLLOWS: return value->a * time + (value->b - value->a) * worked(time);
    default: return value_at(value, gpu, 0) * time;
    }
}

static double integral(const Value *value, const Gpu *gpu, double time) {
    char key[64];
    size_t length = strcspn(value->text + 9, ")");
    if (length >= sizeof key) return 0;
    memcpy(key, value->text + 9, length);
    key[length] = 0;
    const Value *source = table_find(&gpu->table, key);
    return source && source->kind != INTEGRAL ? area(source, gpu, time) : 0;
}

double value_at(const Value *value, const Gpu *gpu, double time) {
    switch (value->kind) {
    case SINE: return value->a + value->b * sin(2 * M_PI * time / value->c);
    case SQUARE: return time - floor(time / value->c) * value->c < value->c / 2 ? value->a : value->b;
    case RAMP:
    case COUNTER: return value->a + value->b * (time > 0 ? time : 0);
    case STEPS: return step_at(value, time);
    case INTEGRAL: return integral(value, gpu, time);
    case FOLLOWS: return value->a + (value->b - value->a) * level_at(time);
    case ALL_ONES: return NAN;
    default: return value->a;
    }
}

uint64_t whole_at(const Value *value, const Gpu *gpu, double time) {
    if (value->kind == ALL_ONES) return UINT64_MAX;
    if (value->kind == NUMBER && value->exact) return value->whole;
    if (value->kind == COUNTER) return value->whole + (uint64_t)(value->b * (time > 0 ? time : 0));
    double now = round(value_at(value, gpu, time));
    return now < 0 ? (uint64_t)(int64_t)now : (uint64_t)now;
}

double value_mean(const Value *value, const Gpu *gpu, double from, double until) {
    if (value->kind == ALL_ONES || until <= from) return value_at(value, gpu, until);
    return (area(value, gpu, until) - area(value, gpu, from)) / (until - from);
}
