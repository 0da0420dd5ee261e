/* Calls of the system that work with files: recorded, or one of them made to fail. Loaded with LD_PRELOAD.
 *
 * Only files below one folder count ("tracked"), and only after proof_record or proof_fail was called, by ctypes. So
 * the modules that Python imports are never touched. system_calls.py says what the recorded bytes mean.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))real(#name))
#define FICLONE_REQUEST 0x40049409UL

/* Kinds of calls; the same numbers as in system_calls.py. */
enum { OPEN = 1, READ = 2, WRITE = 4, SYNC = 8, RENAME = 16, MAP = 32, CLOSE = 64, UNLINK = 128, TRUNCATE = 256,
       MKDIR = 512 };
/* Recorded events; the same numbers as in system_calls.py. */
enum { E_CREATE = 1, E_WRITE, E_TRUNCATE, E_FSYNC, E_FSYNC_FOLDER, E_SYNC_ALL, E_RENAME, E_LINK, E_UNLINK, E_MKDIR,
       E_RMDIR, E_MARK, E_MAP, E_SYMLINK, E_EXCHANGE };

struct event { uint32_t kind, size; uint64_t inode, place, size2; };

static char folder[PATH_MAX];
static size_t folder_size;
static int trace = -1;
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int kinds, code, forever;
static long due, count, counts[10];
static char failed[PATH_MAX + 64];

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static int below(const char *path) {
    return folder_size && strncmp(path, folder, folder_size) == 0 &&
           (path[folder_size] == 0 || path[folder_size] == '/');
}

/* Write the absolute path of a name, and return whether it is tracked. */
static int path_at(int at, const char *name, char *out) {
    if (!folder_size || name == NULL) return 0;
    if (name[0] == '/') {
        snprintf(out, PATH_MAX, "%s", name);
    } else {
        char base[PATH_MAX];
        if (at == AT_FDCWD) {
            if (getcwd(base, sizeof base) == NULL) return 0;
        } else {
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", at);
            ssize_t n = readlink(link, base, sizeof base - 1);
            if (n < 0) return 0;
            base[n] = 0;
        }
        if (snprintf(out, PATH_MAX, "%s/%s", base, name) >= PATH_MAX) return 0;
    }
    return below(out);
}

static int path_of(int handle, char *out) {
    char link[64];
    if (!folder_size || handle < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    if (n < 0) return 0;
    out[n] = 0;
    return below(out);
}

/* Return the error number with which this call has to fail, 0: none, -1: it does a part only. */
static int fails(int kind, const char *name, const char *path) {
    if (!kinds) return 0;
    __atomic_add_fetch(&counts[__builtin_ctz(kind)], 1, __ATOMIC_SEQ_CST);
    if (!(kinds & kind)) return 0;
    long now = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    if (!due || now < due || (now > due && !forever)) return 0;
    if (now == due) snprintf(failed, sizeof failed, "%s %s", name, path);
    return code;
}

static void put(uint32_t kind, uint64_t inode, uint64_t place, const void *data, size_t size, const void *more,
                size_t size2) {
    struct event head = {kind, (uint32_t)size, inode, place, size2};
    ssize_t (*out)(int, const void *, size_t) = REAL(write);
    const void *parts[] = {&head, data, more};
    size_t sizes[] = {sizeof head, size, size2};
    for (int i = 0; i < 3; i++) {
        const char *at = parts[i];
        size_t left = sizes[i];
        while (left) {
            ssize_t n = out(trace, at, left);
            if (n < 0) abort();
            at += n;
            left -= n;
        }
    }
}

static void put_names(uint32_t kind, uint64_t inode, const char *a, const char *b) {
    put(kind, inode, 0, a, strlen(a), b, b == NULL ? 0 : strlen(b));
}

static uint64_t inode_of(int handle) {
    struct stat found;
    return fstat(handle, &found) ? 0 : found.st_ino;
}

/* Record what a call has written, read back from the file. */
static void put_copied(int handle, off_t place, size_t size) {
    char *data = malloc(size ? size : 1);
    ssize_t (*in)(int, void *, size_t, off_t) = REAL(pread);
    size_t done = 0;
    while (done < size) {
        ssize_t n = in(handle, data + done, size - done, place + done);
        if (n <= 0) break;
        done += n;
    }
    put(E_WRITE, inode_of(handle), place, data, done, NULL, 0);
    free(data);
}

/* ---- used by system_calls.py */

void proof_record(const char *where, const char *path) {
    snprintf(folder, sizeof folder, "%s", where);
    trace = REAL(open)(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (trace < 0) abort();
    folder_size = strlen(folder);
}

void proof_stop(void) {
    folder_size = 0;
    kinds = 0;
    if (trace >= 0) REAL(close)(trace);
    trace = -1;
}

void proof_mark(uint64_t number, uint64_t synced) {
    pthread_mutex_lock(&lock);
    if (trace >= 0) put(E_MARK, number, synced, NULL, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
}

void proof_fail(const char *where, int which, long number, int with, int always) {
    snprintf(folder, sizeof folder, "%s", where);
    kinds = which;
    code = with;
    forever = always;
    due = number;
    count = 0;
    memset(counts, 0, sizeof counts);
    failed[0] = 0;
    folder_size = strlen(folder);
}

/* ---- where a process dies */

static int crash = -1;
static char crash_stack[1 << 16];

static void say_frames(int number, siginfo_t *info, void *context) {
    void *frames[64];
    (void)context;
    (void)info;
    /* Names of libraries and functions, innermost first; takes no memory. */
    backtrace_symbols_fd(frames, backtrace(frames, 64), crash);
    REAL(close)(crash);
    signal(number, SIG_DFL);
    /* A fault would come again by itself, an alarm would not. */
    raise(number);
}

/* Write the frames of a deadly signal, or of one that ends a process that hangs, to a file. */
void proof_crashes(const char *path) {
    void *frames[4];
    stack_t stack = {.ss_sp = crash_stack, .ss_size = sizeof crash_stack};
    struct sigaction action = {.sa_sigaction = say_frames, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    crash = REAL(open)(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (crash < 0) abort();
    /* The first call loads a library. */
    backtrace(frames, 4);
    sigaltstack(&stack, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGABRT, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
}

/* Let the stack of this thread grow, which a limit of the address space would not; a stack that cannot ends any
   process. */
void proof_stack(void) {
    volatile char room[4 << 20];
    for (size_t at = 0; at < sizeof room; at += 1024) room[at] = 1;
}

long proof_count(int kind) { return counts[__builtin_ctz(kind)]; }
const char *proof_failed(void) { return failed; }

/* ---- the calls */

#define ENTER(kind, text, at)                                                                                        \
    int wrong = fails(kind, text, at);                                                                               \
    if (wrong > 0) {                                                                                                 \
        errno = wrong;                                                                                               \
        return -1;                                                                                                   \
    }
#define BEGIN pthread_mutex_lock(&lock)
#define END                                                                                                          \
    int kept = errno;                                                                                                \
    pthread_mutex_unlock(&lock);                                                                                     \
    errno = kept;                                                                                                    \
    return done

static int opened(int at, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    int (*call)(int, const char *, int, ...) = REAL(openat);
    if (!path_at(at, name, path)) return call(at, name, flags, mode);
    ENTER(OPEN, "open", path);
    BEGIN;
    struct stat found;
    int is_new = (flags & O_CREAT) && lstat(path, &found) != 0;
    int done = call(at, name, flags, mode);
    if (done >= 0 && trace >= 0) {
        if ((flags & O_TMPFILE) == O_TMPFILE) is_new = 0;
        if (is_new) put_names(E_CREATE, inode_of(done), path, NULL);
        else if (flags & O_TRUNC) put(E_TRUNCATE, inode_of(done), 0, NULL, 0, NULL, 0);
    }
    END;
}

#define MODE                                                                                                         \
    mode_t mode = 0;                                                                                                 \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                                             \
        va_list list;                                                                                                \
        va_start(list, flags);                                                                                       \
        mode = va_arg(list, mode_t);                                                                                 \
        va_end(list);                                                                                                \
    }
int open(const char *name, int flags, ...) { MODE return opened(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE return opened(AT_FDCWD, name, flags | O_LARGEFILE, mode); }
int openat(int at, const char *name, int flags, ...) { MODE return opened(at, name, flags, mode); }
int openat64(int at, const char *name, int flags, ...) { MODE return opened(at, name, flags | O_LARGEFILE, mode); }
int creat(const char *name, mode_t mode) { return opened(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int handle) {
    char path[PATH_MAX];
    int (*call)(int) = REAL(close);
    int wrong = kinds && path_of(handle, path) ? fails(CLOSE, "close", path) : 0;
    int done = call(handle);
    if (wrong > 0) {
        errno = wrong;
        return -1;
    }
    return done;
}

#define READS(name, args, pass, size_name)                                                                           \
    ssize_t name args {                                                                                              \
        char path[PATH_MAX];                                                                                         \
        if (kinds && path_of(handle, path)) {                                                                        \
            ENTER(READ, #name, path);                                                                                \
            if (wrong < 0 && size_name > 1) size_name /= 2;                                                          \
        }                                                                                                            \
        return REAL(name) pass;                                                                                      \
    }
READS(read, (int handle, void *data, size_t size), (handle, data, size), size)
READS(pread, (int handle, void *data, size_t size, off_t place), (handle, data, size, place), size)
READS(pread64, (int handle, void *data, size_t size, off_t place), (handle, data, size, place), size)

ssize_t write(int handle, const void *data, size_t size) {
    char path[PATH_MAX];
    if (!path_of(handle, path)) return REAL(write)(handle, data, size);
    ENTER(WRITE, "write", path);
    if (wrong < 0 && size > 1) size /= 2;
    BEGIN;
    ssize_t done = REAL(write)(handle, data, size);
    if (done > 0 && trace >= 0)
        put(E_WRITE, inode_of(handle), lseek(handle, 0, SEEK_CUR) - done, data, done, NULL, 0);
    END;
}

static ssize_t written_at(int handle, const void *data, size_t size, off_t place) {
    char path[PATH_MAX];
    if (!path_of(handle, path)) return REAL(pwrite)(handle, data, size, place);
    ENTER(WRITE, "pwrite", path);
    if (wrong < 0 && size > 1) size /= 2;
    BEGIN;
    ssize_t done = REAL(pwrite)(handle, data, size, place);
    if (done > 0 && trace >= 0) put(E_WRITE, inode_of(handle), place, data, done, NULL, 0);
    END;
}
ssize_t pwrite(int handle, const void *data, size_t size, off_t place) { return written_at(handle, data, size, place); }
ssize_t pwrite64(int handle, const void *data, size_t size, off_t place) {
    return written_at(handle, data, size, place);
}

ssize_t writev(int handle, const struct iovec *parts, int number) {
    char path[PATH_MAX];
    if (!path_of(handle, path)) return REAL(writev)(handle, parts, number);
    ENTER(WRITE, "writev", path);
    BEGIN;
    off_t place = lseek(handle, 0, SEEK_CUR);
    ssize_t done = REAL(writev)(handle, parts, number);
    if (done > 0 && trace >= 0) put_copied(handle, place, done);
    END;
}

ssize_t copy_file_range(int from, off_t *from_place, int handle, off_t *place, size_t size, unsigned flags) {
    char path[PATH_MAX];
    if (!path_of(handle, path)) return REAL(copy_file_range)(from, from_place, handle, place, size, flags);
    ENTER(WRITE, "copy_file_range", path);
    if (wrong < 0 && size > 1) size /= 2;
    BEGIN;
    off_t at = place ? *place : lseek(handle, 0, SEEK_CUR);
    ssize_t done = REAL(copy_file_range)(from, from_place, handle, place, size, flags);
    if (done > 0 && trace >= 0) put_copied(handle, at, done);
    END;
}

static ssize_t sent(int handle, int from, off_t *place, size_t size) {
    char path[PATH_MAX];
    if (!path_of(handle, path)) return REAL(sendfile)(handle, from, place, size);
    ENTER(WRITE, "sendfile", path);
    if (wrong < 0 && size > 1) size /= 2;
    BEGIN;
    off_t at = lseek(handle, 0, SEEK_CUR);
    ssize_t done = REAL(sendfile)(handle, from, place, size);
    if (done > 0 && trace >= 0) put_copied(handle, at, done);
    END;
}
ssize_t sendfile(int handle, int from, off_t *place, size_t size) { return sent(handle, from, place, size); }
ssize_t sendfile64(int handle, int from, off_t *place, size_t size) { return sent(handle, from, place, size); }

int ioctl(int handle, unsigned long request, ...) {
    va_list list;
    va_start(list, request);
    void *more = va_arg(list, void *);
    va_end(list);
    char path[PATH_MAX];
    BEGIN;
    int done = REAL(ioctl)(handle, request, more);
    struct stat found;
    if (done == 0 && (request & 0xffffffffUL) == FICLONE_REQUEST && trace >= 0 && path_of(handle, path) &&
        fstat(handle, &found) == 0)
        put_copied(handle, 0, found.st_size);
    END;
}

static int synced(int handle, const char *name) {
    char path[PATH_MAX];
    int (*call)(int) = real(name);
    if (!path_of(handle, path)) return call(handle);
    ENTER(SYNC, name, path);
    BEGIN;
    /* What matters is the order; waiting for a disk would only take time. */
    int done = trace >= 0 ? 0 : call(handle);
    struct stat found;
    if (trace >= 0 && fstat(handle, &found) == 0) {
        if (S_ISDIR(found.st_mode)) put_names(E_FSYNC_FOLDER, found.st_ino, path, NULL);
        else put(E_FSYNC, found.st_ino, 0, NULL, 0, NULL, 0);
    }
    END;
}
int fsync(int handle) { return synced(handle, "fsync"); }
int fdatasync(int handle) { return synced(handle, "fdatasync"); }

void sync(void) {
    pthread_mutex_lock(&lock);
    if (trace >= 0) put(E_SYNC_ALL, 0, 0, NULL, 0, NULL, 0);
    else if (!folder_size) ((void (*)(void))real("sync"))();
    pthread_mutex_unlock(&lock);
}

static int renamed(int at, const char *old, int to, const char *name, unsigned flags) {
    char a[PATH_MAX], b[PATH_MAX];
    int (*call)(int, const char *, int, const char *, unsigned) = real("renameat2");
    if (!path_at(at, old, a) || !path_at(to, name, b)) return call(at, old, to, name, flags);
    ENTER(RENAME, "rename", a);
    BEGIN;
    struct stat found;
    uint64_t inode = lstat(a, &found) ? 0 : found.st_ino;
    int done = call(at, old, to, name, flags);
    if (done == 0 && trace >= 0) put_names(flags & RENAME_EXCHANGE ? E_EXCHANGE : E_RENAME, inode, a, b);
    END;
}
int rename(const char *old, const char *name) { return renamed(AT_FDCWD, old, AT_FDCWD, name, 0); }
int renameat(int at, const char *old, int to, const char *name) { return renamed(at, old, to, name, 0); }
int renameat2(int at, const char *old, int to, const char *name, unsigned flags) {
    return renamed(at, old, to, name, flags);
}

static int linked(int at, const char *old, int to, const char *name, int flags) {
    char a[PATH_MAX], b[PATH_MAX];
    if (!path_at(at, old, a) || !path_at(to, name, b)) return REAL(linkat)(at, old, to, name, flags);
    ENTER(RENAME, "link", b);
    BEGIN;
    int done = REAL(linkat)(at, old, to, name, flags);
    if (done == 0 && trace >= 0) put_names(E_LINK, 0, a, b);
    END;
}
int link(const char *old, const char *name) { return linked(AT_FDCWD, old, AT_FDCWD, name, 0); }
int linkat(int at, const char *old, int to, const char *name, int flags) { return linked(at, old, to, name, flags); }

static int unlinked(int at, const char *name, int flags) {
    char path[PATH_MAX];
    if (!path_at(at, name, path)) return REAL(unlinkat)(at, name, flags);
    ENTER(UNLINK, flags & AT_REMOVEDIR ? "rmdir" : "unlink", path);
    BEGIN;
    int done = REAL(unlinkat)(at, name, flags);
    if (done == 0 && trace >= 0) put_names(flags & AT_REMOVEDIR ? E_RMDIR : E_UNLINK, 0, path, NULL);
    END;
}
int unlink(const char *name) { return unlinked(AT_FDCWD, name, 0); }
int unlinkat(int at, const char *name, int flags) { return unlinked(at, name, flags); }
int rmdir(const char *name) { return unlinked(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int at, const char *name, mode_t mode) {
    char path[PATH_MAX];
    if (!path_at(at, name, path)) return REAL(mkdirat)(at, name, mode);
    ENTER(MKDIR, "mkdir", path);
    BEGIN;
    int done = REAL(mkdirat)(at, name, mode);
    struct stat found;
    if (done == 0 && trace >= 0) put_names(E_MKDIR, lstat(path, &found) ? 0 : found.st_ino, path, NULL);
    END;
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

static int cut(int handle, off_t size) {
    char path[PATH_MAX];
    if (!path_of(handle, path)) return REAL(ftruncate)(handle, size);
    ENTER(TRUNCATE, "ftruncate", path);
    BEGIN;
    int done = REAL(ftruncate)(handle, size);
    if (done == 0 && trace >= 0) put(E_TRUNCATE, inode_of(handle), size, NULL, 0, NULL, 0);
    END;
}
int ftruncate(int handle, off_t size) { return cut(handle, size); }
int ftruncate64(int handle, off_t size) { return cut(handle, size); }

static void *mapped(void *at, size_t size, int may, int flags, int handle, off_t place) {
    char path[PATH_MAX];
    if (handle >= 0 && path_of(handle, path)) {
        int wrong = fails(MAP, "mmap", path);
        if (wrong > 0) {
            errno = wrong;
            return MAP_FAILED;
        }
        if (trace >= 0 && (may & PROT_WRITE) && (flags & MAP_SHARED)) {
            pthread_mutex_lock(&lock);
            put_names(E_MAP, inode_of(handle), path, NULL);
            pthread_mutex_unlock(&lock);
        }
    }
    return REAL(mmap)(at, size, may, flags, handle, place);
}
void *mmap(void *at, size_t size, int may, int flags, int handle, off_t place) {
    return mapped(at, size, may, flags, handle, place);
}
void *mmap64(void *at, size_t size, int may, int flags, int handle, off_t place) {
    return mapped(at, size, may, flags, handle, place);
}
