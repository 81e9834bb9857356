/* The shared journal: what a scenario did to the disk, in the one order in which it happened. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOURNAL_MAGIC 0x6c6e726a6a646101ULL
#define JOURNAL_BODY 4096

enum entry_kind {
    MARK = 1, WRITE, TRUNCATE, CREATE, MKDIR, UNLINK, RENAME, LINK, SYNC, SYNC_ALL,
};

struct journal {
    uint64_t magic;
    uint64_t size;  /* of the whole file */
    uint64_t tail;  /* where the next entry goes */
    uint64_t dev;   /* only files of this device are told of */
    uint64_t full;  /* an entry did not fit: the journal is worthless */
    pthread_mutex_t lock;
};

struct entry {
    uint32_t size;
    uint32_t kind;
    uint32_t pid;
    uint32_t name_size, other_size, body_size;
    uint64_t inode;
    uint64_t offset; /* or the new size */
    uint64_t dir, other_dir;
};

static inline struct journal *journal_map(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat at;
    if (fd < 0) return NULL;
    if (fstat(fd, &at) != 0) at.st_size = 0;
    void *map = at.st_size < JOURNAL_BODY ? MAP_FAILED : mmap(NULL, at.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return map == MAP_FAILED ? NULL : map;
}

static inline void journal_begin(struct journal *journal, uint64_t size, uint64_t dev) {
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&journal->lock, &shared);
    journal->size = size;
    journal->dev = dev;
    journal->tail = JOURNAL_BODY;
    journal->full = 0;
    journal->magic = JOURNAL_MAGIC;
}

static inline void journal_lock(struct journal *journal) {
    /* A holder that was killed left a whole journal: the tail moves last. */
    if (pthread_mutex_lock(&journal->lock) == EOWNERDEAD) pthread_mutex_consistent(&journal->lock);
}

static inline void journal_unlock(struct journal *journal) { pthread_mutex_unlock(&journal->lock); }

/* Append one entry; the caller holds the lock. */
static inline void journal_add(struct journal *journal, struct entry entry, const char *name, const char *other,
                               const void *body, size_t body_size) {
    entry.pid = getpid();
    entry.name_size = name ? strlen(name) : 0;
    entry.other_size = other ? strlen(other) : 0;
    entry.body_size = body_size;
    uint64_t size = (sizeof entry + entry.name_size + entry.other_size + body_size + 7) & ~7ULL;
    entry.size = size;
    if (journal->tail + size > journal->size) {
        journal->full = 1;
        return;
    }
    char *at = (char *)journal + journal->tail;
    memcpy(at, &entry, sizeof entry);
    at += sizeof entry;
    memcpy(at, name ? name : "", entry.name_size);
    memcpy(at + entry.name_size, other ? other : "", entry.other_size);
    memcpy(at + entry.name_size + entry.other_size, body ? body : "", body_size);
    journal->tail += size;
}

static inline void journal_mark(struct journal *journal, const char *text) {
    journal_lock(journal);
    journal_add(journal, (struct entry){.kind = MARK}, text, NULL, NULL, 0);
    journal_unlock(journal);
}
