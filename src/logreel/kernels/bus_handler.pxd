# The signal handler of mapguard.py. Cython cannot express it: it runs at any moment, without the GIL.

cdef extern from *:
    """
    #include <stdint.h>
    #if defined(_WIN32) || defined(__EMSCRIPTEN__)
    #define LOGREEL_CAN_GUARD 0
    static int64_t logreel_losses(void) { return 0; }
    static int logreel_install(void) { return -1; }
    static int64_t logreel_watch(const void* data, int64_t size) { (void)data; (void)size; return -1; }
    static int64_t logreel_lost(int64_t number) { (void)number; return -1; }
    static void logreel_forget(int64_t number) { (void)number; }
    static int logreel_is_same(const char* p, int64_t d, int64_t i, int64_t s, int64_t m) { return 0; }
    #else
    #define LOGREEL_CAN_GUARD 1
    #include <errno.h>
    #include <signal.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <sys/stat.h>
    #include <unistd.h>
    #ifndef MAP_ANONYMOUS
    #define MAP_ANONYMOUS MAP_ANON
    #endif
    #ifndef MAP_NORESERVE
    #define MAP_NORESERVE 0
    #endif

    #define LOGREEL_LOAD(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
    #define LOGREEL_STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
    #define LOGREEL_SWAP(p, was, v) \
        __atomic_compare_exchange_n((p), (was), (v), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

    /* Slots are written by any thread, which may hold no GIL, and read by the handler. One with an odd version is being
       written by the thread that made it odd. Blocks of slots are never freed, so that the chain can be followed at any
       time. */
    enum { LOGREEL_SLOTS = 256, LOGREEL_PATIENCE = 16 };
    typedef struct { uint64_t version; uintptr_t start, end, lost; } logreel_slot;
    typedef struct logreel_block { logreel_slot slot[LOGREEL_SLOTS]; struct logreel_block* next; } logreel_block;

    static logreel_block logreel_first;
    static int64_t logreel_count;
    static struct sigaction logreel_before;
    static uintptr_t logreel_page;
    static uintptr_t logreel_foreign_place;
    static int logreel_foreign_count;

    static int64_t logreel_losses(void) { return LOGREEL_LOAD(&logreel_count); }

    /* Put zeros from the page of *at* to the end of the watched range that it is in; return whether there is one. */
    static int logreel_fill(uintptr_t at) {
        logreel_block* block = &logreel_first;
        uintptr_t from = at & ~(logreel_page - 1);
        for (; block; block = LOGREEL_LOAD(&block->next)) {
            for (int i = 0; i < LOGREEL_SLOTS; i++) {
                logreel_slot* slot = &block->slot[i];
                uint64_t version = LOGREEL_LOAD(&slot->version);
                uintptr_t start = LOGREEL_LOAD(&slot->start), end = LOGREEL_LOAD(&slot->end), lost;
                if (at < start || at >= end || version % 2 || LOGREEL_LOAD(&slot->version) != version) continue;
                /* Noted first: a thread that sees the zeros must find it noted. */
                lost = LOGREEL_LOAD(&slot->lost);
                while (from < lost && !LOGREEL_SWAP(&slot->lost, &lost, from)) {}
                __atomic_add_fetch(&logreel_count, 1, __ATOMIC_SEQ_CST);
                if (mmap((void*)from, end - from, PROT_READ,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED) return 1;
            }
        }
        return 0;
    }

    static void logreel_default(int sig, int again) {
        struct sigaction plain;
        memset(&plain, 0, sizeof plain);
        plain.sa_handler = SIG_DFL;
        sigemptyset(&plain.sa_mask);
        sigaction(sig, &plain, 0);
        if (again) raise(sig);
    }

    static void logreel_on_bus(int sig, siginfo_t* info, void* context) {
        int kept = errno, is_fault = info->si_code > 0;
        uintptr_t at = (uintptr_t)info->si_addr;
        if (is_fault && logreel_fill(at)) { errno = kept; return; }
        if (is_fault && LOGREEL_LOAD(&logreel_foreign_place) != at) {
            LOGREEL_STORE(&logreel_foreign_place, at);
            LOGREEL_STORE(&logreel_foreign_count, 0);
        }
        /* A handler that returns without a cure, or that calls this one, would go on forever. */
        if (__atomic_add_fetch(&logreel_foreign_count, 1, __ATOMIC_SEQ_CST) > LOGREEL_PATIENCE
            || (!(logreel_before.sa_flags & SA_SIGINFO) && logreel_before.sa_handler == SIG_DFL))
            logreel_default(sig, !is_fault);
        else if (logreel_before.sa_flags & SA_SIGINFO)
            logreel_before.sa_sigaction(sig, info, context);
        else if (logreel_before.sa_handler != SIG_IGN)
            logreel_before.sa_handler(sig);
        else if (is_fault)
            logreel_default(sig, 0);
        /* What another process sends is no loop; what a handler raises again may be one. */
        if (!is_fault && info->si_pid != getpid()) __atomic_sub_fetch(&logreel_foreign_count, 1, __ATOMIC_SEQ_CST);
        errno = kept;
    }

    /* Two threads that come here at once store the same. */
    static int logreel_install(void) {
        struct sigaction now, ours;
        if (sigaction(SIGBUS, 0, &now)) return -1;
        if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == logreel_on_bus) return 0;
        logreel_page = (uintptr_t)sysconf(_SC_PAGESIZE);
        logreel_before = now;
        memset(&ours, 0, sizeof ours);
        ours.sa_sigaction = logreel_on_bus;
        /* The handler before may rely on being interruptible by the same signal. */
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (now.sa_flags & SA_NODEFER);
        sigemptyset(&ours.sa_mask);
        return sigaction(SIGBUS, &ours, 0);
    }

    static logreel_slot* logreel_slot_at(int64_t number) {
        logreel_block* block = &logreel_first;
        for (; number >= LOGREEL_SLOTS && block; number -= LOGREEL_SLOTS)
            block = LOGREEL_LOAD(&block->next);
        return block && number >= 0 ? &block->slot[number] : 0;
    }

    static int64_t logreel_watch(const void* data, int64_t size) {
        uintptr_t start = (uintptr_t)data & ~(logreel_page - 1);
        uintptr_t end = ((uintptr_t)data + (uintptr_t)size + logreel_page - 1) & ~(logreel_page - 1);
        int64_t number = 0;
        for (logreel_block* block = &logreel_first; ; block = LOGREEL_LOAD(&block->next)) {
            for (int i = 0; i < LOGREEL_SLOTS; i++, number++) {
                logreel_slot* slot = &block->slot[i];
                uint64_t version = LOGREEL_LOAD(&slot->version);
                /* Whoever makes the version odd has the slot; it was free if the version is still that before. */
                if (version % 2 || LOGREEL_LOAD(&slot->end) || !LOGREEL_SWAP(&slot->version, &version, version + 1))
                    continue;
                LOGREEL_STORE(&slot->start, start);
                LOGREEL_STORE(&slot->end, end);
                LOGREEL_STORE(&slot->lost, end);
                LOGREEL_STORE(&slot->version, version + 2);
                return number;
            }
            if (!LOGREEL_LOAD(&block->next)) {
                logreel_block *more = calloc(1, sizeof *more), *none = 0;
                if (!more) return -1;
                if (!LOGREEL_SWAP(&block->next, &none, more)) free(more);
            }
        }
    }

    static int64_t logreel_lost(int64_t number) {
        logreel_slot* slot = logreel_slot_at(number);
        if (!slot) return -1;
        uintptr_t lost = LOGREEL_LOAD(&slot->lost);
        return lost < LOGREEL_LOAD(&slot->end) ? (int64_t)(lost - LOGREEL_LOAD(&slot->start)) : -1;
    }

    static int logreel_is_same(const char* path, int64_t device, int64_t inode, int64_t size, int64_t time) {
        struct stat now;
        if (stat(path, &now)) return 0;
    #if defined(__APPLE__)
        int64_t modified = (int64_t)now.st_mtimespec.tv_sec * 1000000000 + now.st_mtimespec.tv_nsec;
    #else
        int64_t modified = (int64_t)now.st_mtim.tv_sec * 1000000000 + now.st_mtim.tv_nsec;
    #endif
        return (int64_t)now.st_dev == device && (int64_t)now.st_ino == inode && (int64_t)now.st_size == size
            && modified == time;
    }

    static void logreel_forget(int64_t number) {
        logreel_slot* slot = logreel_slot_at(number);
        if (!slot) return;
        uint64_t version = LOGREEL_LOAD(&slot->version);
        LOGREEL_STORE(&slot->version, version + 1);
        LOGREEL_STORE(&slot->start, 0);
        LOGREEL_STORE(&slot->end, 0);
        LOGREEL_STORE(&slot->lost, 0);
        LOGREEL_STORE(&slot->version, version + 2);
    }
    #endif
    """
    bint CAN_GUARD "LOGREEL_CAN_GUARD"
    long long c_losses "logreel_losses" ()
    int c_install "logreel_install" ()
    long long c_watch "logreel_watch" (const void* data, long long size)
    long long c_lost "logreel_lost" (long long number)
    void c_forget "logreel_forget" (long long number)
    int c_is_same "logreel_is_same" (
        const char* path, long long device, long long inode, long long size, long long time) nogil
