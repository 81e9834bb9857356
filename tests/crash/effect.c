/* The outside effect that a scenario must not have twice: one fixed-length, checksummed line for each start and end.
 *
 * Linked statically, so that LD_PRELOAD and with it the injection never reach it.
 *
 *     effect FILE [--ask CODE] [--linger MILLISECONDS] [--exit CODE]
 *
 * With --ask it leaves with CODE unless AUTO_APPROVAL is set; its line then says `ask` and counts as no effect.
 */
#define _GNU_SOURCE
#include "journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LINE 256

static const char *from_env(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : "-";
}

static uint32_t crc32(const char *text, size_t size) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned char)text[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void record(const char *file, const char *what) {
    char line[LINE + 1], fields[LINE];
    snprintf(fields, sizeof fields, "%s call=%s run=%s task=%s auto=%s pid=%d", what, from_env("ADJOURN_CALL_ID"),
             from_env("ADJOURN_RUN_ID"), from_env("ADJOURN_TASK_ID"), from_env("AUTO_APPROVAL"), getpid());
    int size = snprintf(line, sizeof line, "%-242.242s crc=", fields);
    snprintf(line + size, sizeof line - size, "%08x\n", crc32(line, size));
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, LINE) != LINE) _exit(99);
    close(fd);
    const char *path = getenv("INJECT_JOURNAL");
    struct journal *journal = path ? journal_map(path) : NULL;
    if (journal) journal_mark(journal, fields);
}

int main(int count, char **words) {
    int ask = 0, code = 0;
    long linger = 0;
    if (count < 2) return 99;
    for (int i = 2; i + 1 < count; i += 2) {
        if (!strcmp(words[i], "--ask")) ask = atoi(words[i + 1]);
        if (!strcmp(words[i], "--exit")) code = atoi(words[i + 1]);
        if (!strcmp(words[i], "--linger")) linger = atol(words[i + 1]);
    }
    if (ask && !getenv("AUTO_APPROVAL")) {
        record(words[1], "ask");
        return ask;
    }
    record(words[1], "start");
    nanosleep(&(struct timespec){.tv_sec = linger / 1000, .tv_nsec = linger % 1000 * 1000000}, NULL);
    record(words[1], "end");
    return code;
}
