/* Kills its process at the n-th write-family call, and tells a journal what the calls did to the disk.
 *
 * Loaded with LD_PRELOAD. A call is seen when it goes through the dynamic linker: everything that Python's os and socket
 * modules, apsw's bundled SQLite and dash do. Not seen: writes through a memory map (SQLite's -shm), stdio of C programs
 * (fwrite, printf), system calls made in assembly or through io_uring, static programs.
 *
 * Closing, unlocking and reaping are not counted: a kill does the same to the world as they do.
 */
#define _GNU_SOURCE
#include "journal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define ROLES 8
#define TRACED 3840

enum mode { NEVER = 0, BEFORE = 1, AFTER = 2, TORN = 3 };

/* Who is killed, and where. The driver reads it from the control file. */
struct role {
    char name[16];          /* the process's own name (PR_SET_NAME); empty: only by inject_arm */
    int64_t at;             /* the n-th call, from 1; 0 only counts */
    _Atomic int64_t count;  /* calls so far */
    int32_t mode;
    int32_t instance;       /* which process of that name, from 0 */
    _Atomic int32_t seen;   /* processes of that name so far */
    _Atomic int32_t killed; /* pid, once killed */
    char what[208];         /* the call at which it was killed */
    char trace[TRACED];     /* one letter for each call: W and P can be torn, P and p go into a pipe */
};

struct control {
    struct role role[ROLES];
};

static struct control unshared;
static struct control *control = &unshared;
static struct journal *journal;
static struct role *armed;
static pid_t armed_pid, looked_up;
static char born_as[16];

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* ---- arming ---- */

int inject_control(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return -1;
    void *map = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED) return -1;
    if (control != &unshared) munmap(control, sizeof *control);
    control = map;
    armed_pid = looked_up = 0;
    return 0;
}

void inject_arm(long at, int mode) {
    armed = &control->role[0];
    armed->at = at;
    armed->mode = mode;
    armed->count = 0;
    armed->killed = 0;
    armed_pid = getpid();
}

long inject_count(void) { return control->role[0].count; }

void inject_disarm(void) { armed_pid = 0; }

static void arm_as(struct role *role) {
    if (role->seen++ != role->instance) return;
    armed = role;
    armed_pid = getpid();
}

/* A process that took the name of a role since it was forked plays it; a fork that only inherited the name does not. */
static void look_up(void) {
    char name[16] = "";
    if (looked_up == getpid()) return;
    prctl(PR_GET_NAME, name);
    if (!strncmp(name, born_as, sizeof name)) return;
    for (int i = 1; i < ROLES; i++)
        if (control->role[i].name[0] && !strncmp(name, control->role[i].name, sizeof name)) {
            looked_up = getpid();
            arm_as(&control->role[i]);
            return;
        }
}

static void child_begins(void) {
    prctl(PR_GET_NAME, born_as);
    looked_up = 0;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("INJECT_CONTROL");
    if (path) inject_control(path);
    if ((path = getenv("INJECT_JOURNAL"))) journal = journal_map(path);
    pthread_atfork(NULL, NULL, child_begins);
}

/* ---- the kill ---- */

static void die(void) {
    armed->killed = getpid();
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

static void tell(const char *kind, int fd, const char *path) {
    char link[64], target[160] = "";
    if (!path) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(link, target, sizeof target - 1);
        target[size < 0 ? 0 : size] = 0;
    }
    snprintf(armed->what, sizeof armed->what, "%s %.160s", kind, path ? path : target);
}

static char letter(int fd, size_t size) {
    struct stat at;
    int pipe = size && fstat(fd, &at) == 0 && S_ISFIFO(at.st_mode);
    return size > 1 ? (pipe ? 'P' : 'W') : pipe ? 'p' : '.';
}

/* Count one call, a write of `size` bytes or none at all. Returns how to die there, or NEVER. */
static int counted(const char *kind, int fd, const char *path, size_t size) {
    int kept = errno, hit = NEVER;
    if (armed_pid != getpid()) look_up();
    if (armed_pid == getpid()) {
        int64_t count = ++armed->count;
        if (count <= TRACED) armed->trace[count - 1] = letter(fd, size);
        if (count == armed->at) {
            tell(kind, fd, path);
            hit = armed->mode;
            if (hit == BEFORE) die();
        }
    }
    errno = kept;
    return hit;
}

static int reached(const char *kind, int fd, const char *path) { return counted(kind, fd, path, 0); }
static int reached_write(const char *kind, int fd, size_t size) { return counted(kind, fd, NULL, size); }

/* Where a torn write stops: at least one byte, never all. */
static size_t prefix(size_t size) {
    return size < 2 ? 0 : 1 + (uint64_t)armed->at * 2654435761u % (size - 1);
}

/* Only writes can be torn; anything else that was to be torn does not happen. */
#define WHOLE(hit) do { if ((hit) == TORN) die(); } while (0)
#define DONE(hit) do { if ((hit) == AFTER) die(); } while (0)

/* ---- the journal ---- */

static int told(const struct stat *at) {
    return journal && at->st_dev == journal->dev && (S_ISREG(at->st_mode) || S_ISDIR(at->st_mode));
}

static int told_fd(int fd, struct stat *at) {
    int kept = errno, is = journal && fstat(fd, at) == 0 && told(at);
    errno = kept;
    return is;
}

/* The directory and the last part of a path, as the kernel will see them. */
struct place {
    uint64_t dir;
    char name[NAME_MAX + 1];
};

static int placed(int at, const char *path, struct place *place) {
    char copy[PATH_MAX], again[PATH_MAX];
    struct stat dir;
    int kept = errno, is = 0;
    if (journal && strlen(path) < sizeof copy) {
        strcpy(copy, path);
        strcpy(again, path);
        is = fstatat(at, dirname(copy), &dir, 0) == 0 && told(&dir);
        place->dir = dir.st_ino;
        snprintf(place->name, sizeof place->name, "%s", basename(again));
    }
    errno = kept;
    return is;
}

static void add(struct entry entry, const struct place *place, const struct place *other, const void *body, size_t size) {
    if (place) entry.dir = place->dir;
    if (other) entry.other_dir = other->dir;
    journal_add(journal, entry, place ? place->name : NULL, other ? other->name : NULL, body, size);
}

static void add_written(int fd, const struct stat *at, off_t offset, ssize_t size) {
    /* Read back what the file has now: true for every kind of write, gathered or copied in the kernel. */
    char chunk[65536], path[64];
    int kept = errno;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDONLY | O_CLOEXEC);
    while (size > 0) {
        ssize_t part = pread(again, chunk, size < (ssize_t)sizeof chunk ? size : (ssize_t)sizeof chunk, offset);
        if (part <= 0) { journal->full = 1; break; }
        add((struct entry){.kind = WRITE, .inode = at->st_ino, .offset = offset}, NULL, NULL, chunk, part);
        offset += part;
        size -= part;
    }
    close(again);
    errno = kept;
}

#define HERE ((off_t)-1)
#define TOLD_WRITE(fd, offset, call) ({ \
    struct stat at_; \
    int is_ = told_fd(fd, &at_); \
    off_t from_ = (offset); \
    if (is_) journal_lock(journal); \
    ssize_t done_ = call; \
    if (is_) { \
        int kept_ = errno; \
        if (from_ == HERE) from_ = lseek(fd, 0, SEEK_CUR) - done_; \
        if (done_ > 0) add_written(fd, &at_, from_, done_); \
        errno = kept_; \
        journal_unlock(journal); \
    } \
    done_; })

/* ---- writes ---- */

ssize_t write(int fd, const void *body, size_t size) {
    REAL(write);
    int hit = reached_write("write", fd, size);
    if (hit == TORN) { real(fd, body, prefix(size)); die(); }
    ssize_t done = TOLD_WRITE(fd, HERE, real(fd, body, size));
    DONE(hit);
    return done;
}

#define PWRITE(name, offset_type) \
    ssize_t name(int fd, const void *body, size_t size, offset_type offset) { \
        REAL(name); \
        int hit = reached_write(#name, fd, size); \
        if (hit == TORN) { real(fd, body, prefix(size), offset); die(); } \
        ssize_t done = TOLD_WRITE(fd, offset, real(fd, body, size, offset)); \
        DONE(hit); \
        return done; \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

static size_t all(const struct iovec *parts, int count) {
    size_t size = 0;
    for (int i = 0; i < count; i++) size += parts[i].iov_len;
    return size;
}

/* Cut a gathered write to its torn prefix; returns how many parts are left. */
static int cut(const struct iovec *parts, int count, struct iovec *kept) {
    int used = 0;
    for (size_t left = prefix(all(parts, count)); left > 0; used++) {
        kept[used] = parts[used];
        if (kept[used].iov_len > left) kept[used].iov_len = left;
        left -= kept[used].iov_len;
    }
    return used;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    int hit = reached_write("writev", fd, all(parts, count));
    if (hit == TORN) { struct iovec kept[count]; real(fd, kept, cut(parts, count, kept)); die(); }
    ssize_t done = TOLD_WRITE(fd, HERE, real(fd, parts, count));
    DONE(hit);
    return done;
}

#define PWRITEV(name, offset_type) \
    ssize_t name(int fd, const struct iovec *parts, int count, offset_type offset) { \
        REAL(name); \
        int hit = reached_write(#name, fd, all(parts, count)); \
        if (hit == TORN) { struct iovec kept[count]; real(fd, kept, cut(parts, count, kept), offset); die(); } \
        ssize_t done = TOLD_WRITE(fd, offset, real(fd, parts, count, offset)); \
        DONE(hit); \
        return done; \
    }
PWRITEV(pwritev, off_t)
PWRITEV(pwritev64, off64_t)

#define PWRITEV2(name, offset_type) \
    ssize_t name(int fd, const struct iovec *parts, int count, offset_type offset, int flags) { \
        REAL(name); \
        int hit = reached_write(#name, fd, all(parts, count)); \
        if (hit == TORN) { struct iovec kept[count]; real(fd, kept, cut(parts, count, kept), offset, flags); die(); } \
        ssize_t done = TOLD_WRITE(fd, offset, real(fd, parts, count, offset, flags)); \
        DONE(hit); \
        return done; \
    }
PWRITEV2(pwritev2, off_t)
PWRITEV2(pwritev64v2, off64_t)

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t size, unsigned flags) {
    REAL(copy_file_range);
    int hit = reached_write("copy_file_range", to, size);
    if (hit == TORN) { real(from, from_at, to, to_at, prefix(size), flags); die(); }
    ssize_t done = TOLD_WRITE(to, to_at ? *to_at : HERE, real(from, from_at, to, to_at, size, flags));
    DONE(hit);
    return done;
}

#define SENDFILE(name, offset_type) \
    ssize_t name(int to, int from, offset_type *offset, size_t size) { \
        REAL(name); \
        int hit = reached_write(#name, to, size); \
        if (hit == TORN) { real(to, from, offset, prefix(size)); die(); } \
        ssize_t done = TOLD_WRITE(to, HERE, real(to, from, offset, size)); \
        DONE(hit); \
        return done; \
    }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

/* ---- sizes ---- */

static void add_size(const struct stat *before, int fd) {
    struct stat now;
    if (fstat(fd, &now) == 0 && now.st_size != before->st_size)
        add((struct entry){.kind = TRUNCATE, .inode = now.st_ino, .offset = now.st_size}, NULL, NULL, NULL, 0);
}

#define TOLD_SIZE(fd, call) ({ \
    struct stat at_; \
    int is_ = told_fd(fd, &at_); \
    if (is_) journal_lock(journal); \
    int result_ = call; \
    if (is_) { int kept_ = errno; add_size(&at_, fd); errno = kept_; journal_unlock(journal); } \
    result_; })

#define RESIZE(name, arguments, ...) \
    int name arguments { \
        REAL(name); \
        int hit = reached(#name, fd, NULL); \
        WHOLE(hit); \
        int result = TOLD_SIZE(fd, real(fd, __VA_ARGS__)); \
        DONE(hit); \
        return result; \
    }
RESIZE(ftruncate, (int fd, off_t size), size)
RESIZE(ftruncate64, (int fd, off64_t size), size)
RESIZE(fallocate, (int fd, int how, off_t from, off_t size), how, from, size)
RESIZE(fallocate64, (int fd, int how, off64_t from, off64_t size), how, from, size)
RESIZE(posix_fallocate, (int fd, off_t from, off_t size), from, size)
RESIZE(posix_fallocate64, (int fd, off64_t from, off64_t size), from, size)

#define TRUNCATE_PATH(name, offset_type) \
    int name(const char *path, offset_type size) { \
        int fd = open(path, O_WRONLY | O_CLOEXEC); \
        int result = fd < 0 ? -1 : ftruncate(fd, size), kept = errno; \
        if (fd >= 0) close(fd); \
        errno = kept; \
        return result; \
    }
TRUNCATE_PATH(truncate, off_t)
TRUNCATE_PATH(truncate64, off64_t)

/* ---- syncs ---- */

#define SYNC_FD(name) \
    int name(int fd) { \
        REAL(name); \
        int hit = reached(#name, fd, NULL); \
        WHOLE(hit); \
        struct stat at; \
        int is = told_fd(fd, &at); \
        if (is) journal_lock(journal); \
        int result = real(fd); \
        if (is && result == 0) add((struct entry){.kind = SYNC, .inode = at.st_ino}, NULL, NULL, NULL, 0); \
        if (is) journal_unlock(journal); \
        DONE(hit); \
        return result; \
    }
SYNC_FD(fsync)
SYNC_FD(fdatasync)

static void add_sync_all(void) {
    if (!journal) return;
    journal_lock(journal);
    add((struct entry){.kind = SYNC_ALL}, NULL, NULL, NULL, 0);
    journal_unlock(journal);
}

int syncfs(int fd) {
    REAL(syncfs);
    int hit = reached("syncfs", fd, NULL), result;
    WHOLE(hit);
    if ((result = real(fd)) == 0) add_sync_all();
    DONE(hit);
    return result;
}

void sync(void) {
    REAL(sync);
    int hit = reached("sync", -1, "");
    WHOLE(hit);
    real();
    add_sync_all();
    DONE(hit);
}

/* ---- names ---- */

static void add_made(int kind, int dir, const char *path, const struct place *place) {
    struct stat made;
    int kept = errno;
    if (fstatat(dir, path, &made, AT_SYMLINK_NOFOLLOW) == 0)
        add((struct entry){.kind = kind, .inode = made.st_ino}, place, NULL, NULL, 0);
    errno = kept;
}

/* Run `call`, which makes or removes one name, and tell `record` of it if it succeeded. */
#define NAMED(called, dir, path, call, record) ({ \
    int hit = reached(called, -1, path); \
    WHOLE(hit); \
    struct place place; \
    int is = placed(dir, path, &place); \
    if (is) journal_lock(journal); \
    int result = call; \
    if (is && result >= 0) { record; } \
    if (is) journal_unlock(journal); \
    DONE(hit); \
    result; })

#define GONE add((struct entry){.kind = UNLINK}, &place, NULL, NULL, 0)

int unlink(const char *path) { REAL(unlink); return NAMED("unlink", AT_FDCWD, path, real(path), GONE); }
int rmdir(const char *path) { REAL(rmdir); return NAMED("rmdir", AT_FDCWD, path, real(path), GONE); }
int unlinkat(int dir, const char *path, int flags) {
    REAL(unlinkat);
    return NAMED("unlinkat", dir, path, real(dir, path, flags), GONE);
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    return NAMED("mkdir", AT_FDCWD, path, real(path, mode), add_made(MKDIR, AT_FDCWD, path, &place));
}
int mkdirat(int dir, const char *path, mode_t mode) {
    REAL(mkdirat);
    return NAMED("mkdirat", dir, path, real(dir, path, mode), add_made(MKDIR, dir, path, &place));
}

int link(const char *from, const char *path) {
    REAL(link);
    return NAMED("link", AT_FDCWD, path, real(from, path), add_made(LINK, AT_FDCWD, path, &place));
}
int linkat(int from_dir, const char *from, int dir, const char *path, int flags) {
    REAL(linkat);
    return NAMED("linkat", dir, path, real(from_dir, from, dir, path, flags), add_made(LINK, dir, path, &place));
}

/* Symbolic links, fifos and sockets are kill points, but no part of a disk image. */
int symlink(const char *target, const char *path) {
    REAL(symlink);
    return NAMED("symlink", AT_FDCWD, path, real(target, path), (void)0);
}
int symlinkat(const char *target, int dir, const char *path) {
    REAL(symlinkat);
    return NAMED("symlinkat", dir, path, real(target, dir, path), (void)0);
}
int mkfifo(const char *path, mode_t mode) {
    REAL(mkfifo);
    return NAMED("mkfifo", AT_FDCWD, path, real(path, mode), (void)0);
}

#define RENAMED(called, from_dir, from, to_dir, to, call) ({ \
    struct place source; \
    int both = placed(from_dir, from, &source); \
    NAMED(called, to_dir, to, call, if (both) add((struct entry){.kind = RENAME}, &source, &place, NULL, 0)); })

int rename(const char *from, const char *to) {
    REAL(rename);
    return RENAMED("rename", AT_FDCWD, from, AT_FDCWD, to, real(from, to));
}
int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    REAL(renameat);
    return RENAMED("renameat", from_dir, from, to_dir, to, real(from_dir, from, to_dir, to));
}
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    REAL(renameat2);
    return RENAMED("renameat2", from_dir, from, to_dir, to, real(from_dir, from, to_dir, to, flags));
}

/* ---- opening ---- */

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* After a replayed power loss the machine has another boot id: INJECT_BOOT_ID names the file that has it. */
static const char *rebooted(const char *path) {
    const char *other = path && !strcmp(path, BOOT_ID) ? getenv("INJECT_BOOT_ID") : NULL;
    return other ? other : path;
}

static int exists(int dir, const char *path, struct stat *at) {
    int kept = errno, is = fstatat(dir, path, at, 0) == 0;
    errno = kept;
    return is;
}

static void add_opened(int fd, int existed, const struct stat *before, const struct place *place) {
    struct stat at;
    if (!told_fd(fd, &at)) return;
    if (!existed) add((struct entry){.kind = CREATE, .inode = at.st_ino}, place, NULL, NULL, 0);
    else if (at.st_size != before->st_size) add_size(before, fd);
}

typedef int opener(int dir, const char *path, int flags, mode_t mode);

static int open_plain(int dir, const char *path, int flags, mode_t mode) {
    static int (*real)(int, const char *, int, ...);
    if (!real) real = dlsym(RTLD_NEXT, "openat64");
    return real(dir, path, flags, mode);
}

static int open_counted(int dir, const char *path, int flags, mode_t mode) {
    path = rebooted(path);
    if (!(flags & (O_CREAT | O_TRUNC))) return open_plain(dir, path, flags, mode);
    struct stat before = {0};
    int existed = exists(dir, path, &before);
    return NAMED(existed ? "open" : "create", dir, path, open_plain(dir, path, flags, mode),
                 add_opened(result, existed, &before, &place));
}

#define MODE(flags) ({ \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); } \
    mode; })

int open(const char *path, int flags, ...) { return open_counted(AT_FDCWD, path, flags, MODE(flags)); }
int open64(const char *path, int flags, ...) { return open_counted(AT_FDCWD, path, flags, MODE(flags)); }
int openat(int dir, const char *path, int flags, ...) { return open_counted(dir, path, flags, MODE(flags)); }
int openat64(int dir, const char *path, int flags, ...) { return open_counted(dir, path, flags, MODE(flags)); }
int creat(const char *path, mode_t mode) { return open_counted(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return open_counted(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* ---- modes, messages, processes, signals: kill points only ---- */

#define COUNTED(result_type, name, fd, path, arguments, ...) \
    result_type name arguments { \
        REAL(name); \
        int hit = reached(#name, fd, path); \
        WHOLE(hit); \
        result_type result = real(__VA_ARGS__); \
        DONE(hit); \
        return result; \
    }
COUNTED(int, chmod, -1, path, (const char *path, mode_t mode), path, mode)
COUNTED(int, fchmod, fd, NULL, (int fd, mode_t mode), fd, mode)
COUNTED(int, fchmodat, -1, path, (int dir, const char *path, mode_t mode, int flags), dir, path, mode, flags)
COUNTED(int, bind, fd, NULL, (int fd, const struct sockaddr *address, socklen_t size), fd, address, size)
COUNTED(ssize_t, send, fd, NULL, (int fd, const void *body, size_t size, int flags), fd, body, size, flags)
COUNTED(ssize_t, sendto, fd, NULL,
        (int fd, const void *body, size_t size, int flags, const struct sockaddr *to, socklen_t to_size),
        fd, body, size, flags, to, to_size)
COUNTED(ssize_t, sendmsg, fd, NULL, (int fd, const struct msghdr *message, int flags), fd, message, flags)
COUNTED(int, kill, -1, "", (pid_t pid, int signal), pid, signal)
COUNTED(int, killpg, -1, "", (pid_t group, int signal), group, signal)
COUNTED(int, posix_spawn, -1, path,
        (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
         char *const argv[], char *const env[]),
        pid, path, actions, how, argv, env)
COUNTED(int, posix_spawnp, -1, path,
        (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
         char *const argv[], char *const env[]),
        pid, path, actions, how, argv, env)

pid_t fork(void) {
    REAL(fork);
    int hit = reached("fork", -1, "");
    WHOLE(hit);
    pid_t child = real();
    if (child != 0) DONE(hit);
    return child;
}

/* A wrapper cannot return twice into one frame, so vfork is a fork here. */
pid_t vfork(void) { return fork(); }

/* What has no function of its own in libc goes through syscall(2): clone3 as a fork, and signals by pidfd. */
long syscall(long number, ...) {
    REAL(syscall);
    va_list rest;
    long a[6];
    va_start(rest, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(rest, long);
    va_end(rest);
    int forks = number == SYS_clone || number == SYS_clone3;
    if (!forks && number != SYS_pidfd_send_signal) return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    int hit = reached(forks ? "clone" : "pidfd_send_signal", -1, "");
    WHOLE(hit);
    long result = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (forks && result == 0) child_begins();
    else DONE(hit);
    return result;
}

/* ---- for the driver ---- */

int inject_begin_journal(const char *path, const char *root) {
    struct stat file, dir;
    journal = journal_map(path);
    if (!journal || stat(path, &file) != 0 || stat(root, &dir) != 0) return -1;
    journal_begin(journal, file.st_size, dir.st_dev);
    return 0;
}

void inject_end_journal(void) { journal = NULL; }

void inject_mark(const char *text) { if (journal) journal_mark(journal, text); }
