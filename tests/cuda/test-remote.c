// SPDX-License-Identifier: MIT
/*
 * Programs that have no driver but a worker: in the slice "a", whose door the worker has before the
 * fake card. What they compute is right, the slice's limits hold, and whatever they do ends at most
 * their own worker.
 */
#include "kit.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control.h"
#include "lib/descriptor.h"
#include "nvml.h"
#include "remote/program.h"
#include "remote/server.h"
#include "channel.h"
#include "signature.h"

#define LIMIT (64 * MIB)
#define ARENA 0x110000000000ull

static void open_worker(void)
{
    g_setenv("FAKE_CUDA_CONTENT", "1", TRUE);
    kit_open(LIMIT);
    server_open();
}

static void close_worker(void)
{
    server_close();
    kit_close();
    g_unsetenv("FAKE_CUDA_CONTENT");
}

static GPid start_client(const char *name, int *output)
{
    return program_start(name, server_environment(g_get_environ()), output);
}

static void test_case(const void *name)
{
    open_worker();
    program_await(start_client(name, NULL), 0);
    kit_charged(0);
    close_worker();
}

/* There is no library of the driver's behind the client's back. */
static void test_no_worker(void)
{
    g_auto(GStrv) env = g_environ_setenv(g_get_environ(), "LD_LIBRARY_PATH", REMOTE_DIR, TRUE);
    char *argv[] = {(char *)REMOTE_CLIENT, (char *)"compute", NULL};
    g_autofree char *said = NULL;
    int status;

    env = g_environ_setenv(env, "VGPU_CUDA_SOCKET", "/nonexistent/cuda.sock", TRUE);
    g_assert_true(g_spawn_sync(NULL, argv, env, 0, NULL, NULL, NULL, &said, &status, NULL));
    g_assert_cmpint(status, ==, 256);
    g_assert_nonnull(strstr(said, "cuInit(0): 100 CUDA_ERROR_NO_DEVICE"));
    g_assert_nonnull(strstr(said, "no GPU for this program: /nonexistent/cuda.sock: No such file"));
}

/* A GPU that would let a program's kernels into the worker's own memory is kept out, or not used.
 */
static void test_host_memory(void)
{
    g_setenv("FAKE_CUDA_HOST_MEMORY", "1", TRUE);
    open_worker();
    program_await(start_client("compute", NULL), 0);
    close_worker();
    g_setenv("FAKE_CUDA_HOST_MEMORY", "2", TRUE);
    open_worker();
    program_await(start_client("unusable", NULL), 0);
    close_worker();
    g_unsetenv("FAKE_CUDA_HOST_MEMORY");
}

/* What the fake card only takes down is compared there. */
static void test_passed(void)
{
    g_autofree char *notes = g_strdup_printf("/tmp/vgpu-notes-%d", getpid());

    g_setenv("FAKE_CUDA_NOTES", notes, TRUE);
    test_case("passed");
    g_unsetenv("FAKE_CUDA_NOTES");
    g_assert_cmpint(unlink(notes), ==, 0);
}

/* 3001 lines of a kernel, of which none is lost, in their order with the program's own. */
static void test_printing(void)
{
    g_autoptr(GString) wanted = g_string_new("before\nhello\nbetween\n");
    g_autoptr(GString) said = g_string_new(NULL);
    char text[4096];
    ssize_t bytes;
    int output;
    GPid pid;

    for (unsigned int i = 0; i < 3000; i++)
        g_string_append(wanted, "hello\n");
    g_string_append(wanted, "after\n");
    open_worker();
    pid = start_client("printing", &output);
    while ((bytes = read(output, text, sizeof(text))) > 0)
        g_string_append_len(said, text, bytes);
    close(output);
    program_await(pid, 0);
    g_assert_cmpstr(said->str, ==, wanted->str);
    close_worker();
}

/* A worker without a driver, for a program that does no more than cuInit(). */
static int welcome_program(int listening)
{
    int socket = accept(listening, NULL, NULL);
    const struct control_welcome welcome = {.reply.magic = CONTROL_MAGIC, .major = CONTROL_MAJOR};
    struct control_hello hello;

    g_assert_cmpint(recv(socket, &hello, sizeof(hello), 0), ==, sizeof(hello));
    g_assert_cmpint(send(socket, &welcome, sizeof(welcome), 0), ==, sizeof(welcome));
    return socket;
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
    g_assert_cmpint(bind(fd, (const struct sockaddr *)&address, sizeof(address)), ==, 0);
    g_assert_cmpint(listen(fd, 1), ==, 0);
    return fd;
}

/* The program has let go of its worker, and has not ended before the worker has. */
static void test_end(void)
{
    g_autofree char *folder = g_dir_make_tmp("vgpu-end-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "cuda.sock", NULL);
    char **env = g_environ_setenv(g_get_environ(), "LD_LIBRARY_PATH", REMOTE_DIR, TRUE);
    int listening = listen_at(path), worker, output;
    struct pollfd end = {.events = POLLIN};
    char said[16] = "";
    GPid pid;

    pid = program_start("ends", g_environ_setenv(env, "VGPU_CUDA_SOCKET", path, TRUE), &output);
    worker = welcome_program(listening);
    g_assert_cmpint(recv(worker, said, sizeof(said), 0), ==, 0);
    end.fd = output;
    g_assert_cmpint(poll(&end, 1, 0), ==, 0);
    close(worker);
    g_assert_cmpint(read(output, said, sizeof(said) - 1), >, 0);
    g_assert_cmpstr(said, ==, "ended\n");
    program_await(pid, 0);
    close(output);
    close(listening);
    g_assert_cmpint(unlink(path), ==, 0);
    g_assert_cmpint(rmdir(folder), ==, 0);
}

/* Its memory is the card's again. */
static void test_killed(void)
{
    GPid pid;

    open_worker();
    pid = program_start_holding("hold", server_environment(g_get_environ()));
    g_assert_cmpuint(kit_on_card(), >=, 32 * MIB);
    kill(pid, SIGKILL);
    program_await(pid, SIGKILL);
    kit_charged(0);
    close_worker();
}

/* The program is told, and lives; the next one has a worker again. */
static void test_lost(void)
{
    GPid pid;

    open_worker();
    pid = program_start_holding("lost", server_environment(g_get_environ()));
    server_kill_workers();
    program_await(pid, 0);
    kit_charged(0);
    program_await(start_client("compute", NULL), 0);
    close_worker();
}

/* What is answered without the worker is answered without one. */
static void test_without_worker(void)
{
    GPid pid;

    open_worker();
    pid = program_start_holding("without-worker", server_environment(g_get_environ()));
    server_kill_workers();
    kill(pid, SIGTERM);
    program_await(pid, 0);
    kit_charged(0);
    close_worker();
}

/*
 * A program that knows the protocol and keeps none of its rules.
 */
struct foe {
    int socket;
    GPid worker;
    struct channel_shared *channel;
    uint64_t served;
};

static struct control_welcome greet_worker(struct foe *foe, uint64_t address, uint64_t bytes)
{
    struct control_hello hello = {.message = {CONTROL_MAGIC, CONTROL_HELLO, address, bytes},
                                  .major = CONTROL_MAJOR};
    struct control_welcome welcome = {.major = 0};

    send(foe->socket, &hello, sizeof(hello), MSG_NOSIGNAL);
    recv(foe->socket, &welcome, sizeof(welcome), 0);
    return welcome;
}

static int ask_worker(struct foe *foe, uint32_t kind, uint64_t address, uint64_t bytes)
{
    const struct control_message message = {CONTROL_MAGIC, kind, address, bytes};

    struct control_reply reply;
    int fd;

    send(foe->socket, &message, sizeof(message), MSG_NOSIGNAL);
    descriptor_receive(foe->socket, &reply, sizeof(reply), 0, &fd, 1);
    return fd;
}

/* One that has not said hello. */
static void start_foe(struct foe *foe)
{
    g_autofree char *number = NULL;
    int pair[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), ==, 0);
    /* The worker has its own end alone. */
    g_assert_cmpint(fcntl(pair[0], F_SETFD, FD_CLOEXEC), ==, 0);
    number = g_strdup_printf("%d", pair[1]);
    foe->worker = server_start_worker("--fd", number);
    close(pair[1]);
    foe->socket = pair[0];
}

static void begin_foe(struct foe *foe)
{
    int fd;

    start_foe(foe);
    g_assert_cmpuint(greet_worker(foe, ARENA, 1ull << 34).reply.result, ==, CONTROL_OK);
    fd = ask_worker(foe, CONTROL_CHANNEL, ARENA, 0);
    g_assert_cmpint(fd, >=, 0);
    foe->channel = mmap(NULL, sizeof(*foe->channel), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    g_assert_true(foe->channel != MAP_FAILED);
    close(fd);
}

static bool is_here(const struct foe *foe)
{
    siginfo_t info = {.si_pid = 0};

    return waitid(P_PID, (id_t)foe->worker, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           !info.si_pid;
}

/* Until it has taken all records. False: it does something that waits. */
static bool let_serve(struct foe *foe)
{
    for (unsigned int i = 0; is_here(foe) && foe->channel->worker.head != foe->channel->client.tail;
         i++) {
        if (i == 1000)
            return false;
        g_usleep(100);
    }
    return true;
}

/* The worker has ended by its own decision, or goes on until we leave. */
static void end_foe(struct foe *foe)
{
    int status;

    let_serve(foe);
    foe->served = foe->channel->worker.head;
    munmap(foe->channel, sizeof(*foe->channel));
    close(foe->socket);
    g_assert_cmpint(waitpid(foe->worker, &status, 0), ==, foe->worker);
    g_test_message("the worker has ended: %d, %lu bytes of records", status, foe->served);
    if (WIFSIGNALED(status))
        g_test_message("by signal %d", WTERMSIG(status));
    g_assert_true(WIFEXITED(status));
    g_assert_cmpint(WEXITSTATUS(status), <=, 1);
}

static uint64_t wild_word(GRand *rand)
{
    static const uint64_t likely[] = {0,
                                      1,
                                      2,
                                      3,
                                      0x110000000000ull,
                                      0x200000000000ull,
                                      4096,
                                      ~0ull,
                                      1ull << 63,
                                      0x100000001ull,
                                      0x200000001ull};

    if (g_rand_int_range(rand, 0, 3))
        return likely[g_rand_int_range(rand, 0, G_N_ELEMENTS(likely))];
    return (uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand);
}

static bool send_record(struct foe *foe, unsigned int number, const uint64_t *words, size_t count,
                        uint16_t flags, uint64_t bulk)
{
    struct channel_record *record = channel_reserve(foe->channel, sizeof(*record) + count * 8);

    if (!record)
        return false;
    record->number = (uint16_t)number;
    record->flags = flags;
    record->bulk = bulk;
    memcpy(record + 1, words, count * 8);
    channel_publish(foe->channel, record);
    channel_wake(&foe->channel->worker.state);
    return true;
}

/* Calls that wait for ever, or end the process's own work, are not made. */
static bool is_harmless(unsigned int number)
{
    return number >= 2048 || number >= signatures_count || !signatures[number].name ||
           !strstr(signatures[number].name, "WaitValue");
}

static bool send_wild(struct foe *foe, GRand *rand)
{
    uint64_t words[64];
    unsigned int number = g_rand_int_range(rand, 0, 8)
                              ? (unsigned int)g_rand_int_range(rand, 1, 740)
                              : (unsigned int)g_rand_int_range(rand, 1995, 2010);
    size_t count = (size_t)g_rand_int_range(rand, 0, 64);

    if (!is_harmless(number))
        return false;
    for (size_t i = 0; i < count; i++)
        words[i] = wild_word(rand);
    return send_record(foe, number, words, count, g_rand_int_range(rand, 0, 6) ? RECORD_ANSWER : 3,
                       g_rand_int_range(rand, 0, 2) ? ARENA : wild_word(rand));
}

/*
 * Calls in which all lengths are right, and nothing else: objects and addresses that the worker has
 * told us, or that nobody has; any numbers.
 */
#define KNOWN_MOST 256

static uint64_t known[KNOWN_MOST];
static unsigned int known_count;

static uint64_t known_or_wild(GRand *rand)
{
    return known_count && g_rand_int_range(rand, 0, 4)
               ? known[g_rand_int_range(rand, 0, (int)known_count)]
               : wild_word(rand);
}

static bool is_a_count(const struct signature *of, unsigned int at)
{
    for (unsigned int i = 0; i < of->count; i++)
        if (of->arguments[i].count == (int8_t)at)
            return true;
    return false;
}

static void fill_part(uint64_t *part, size_t bytes, GRand *rand)
{
    for (size_t i = 0; i < bytes / 8 + 1; i++)
        part[i] = g_rand_int_range(rand, 0, 2) ? known_or_wild(rand)
                                               : (uint64_t)g_rand_int_range(rand, 0, 4);
}

/* False: it has more than a record can hold. */
static bool form_call(const struct signature *of, uint64_t *words, size_t *count, GRand *rand)
{
    uint64_t numbers[SIGNATURE_ARGUMENTS] = {0};

    for (unsigned int i = 0; i < of->count; i++) {
        uint8_t kind = of->arguments[i].kind;

        words[i] = kind >= ARGUMENT_STRUCT && kind <= ARGUMENT_IO ? 1
                   : is_a_count(of, i) ? (uint64_t)g_rand_int_range(rand, 0, 4)
                                       : known_or_wild(rand);
        numbers[i] = (uint64_t)g_rand_int_range(rand, 0, 4);
    }
    *count = of->count;
    for (unsigned int pass = 0; pass < 2; pass++)
        for (unsigned int i = 0; i < of->count; i++) {
            const struct argument *argument = &of->arguments[i];
            size_t bytes;

            if (argument->is_indirect != pass || !argument_is_read(argument))
                continue;
            if (argument->kind == ARGUMENT_TEXT)
                words[i] = 8;
            bytes = argument->kind == ARGUMENT_TEXT ? 8 : signature_bytes(of, i, words, numbers);
            if (bytes > 4096 || *count * 8 + bytes > 12288)
                return false;
            fill_part(words + *count, bytes, rand);
            if (argument->kind == ARGUMENT_TEXT)
                memcpy(words + *count, "axpy\0\0\0", 8);
            if (argument->count < 0 && argument->fixed == 1 && argument->bytes <= 8)
                words[*count] = numbers[i];
            *count += (bytes + 7) / 8;
        }
    return true;
}

static void learn_from_answer(struct foe *foe, GRand *rand)
{
    const struct channel_answer *answer = (const void *)foe->channel->answer;
    const uint64_t *parts = (const uint64_t *)(answer + 1);

    for (unsigned int i = 0; !answer->result && i < answer->bytes / 8 && i < 4; i++)
        if (parts[i]) {
            unsigned int at = known_count < KNOWN_MOST
                                  ? known_count++
                                  : (unsigned int)g_rand_int_range(rand, 0, KNOWN_MOST);

            known[at] = parts[i];
        }
}

/* With a context, as nearly nothing can be done without one. */
static void begin_formed(struct foe *foe)
{
    known_count = 0;
    begin_foe(foe);
    for (unsigned int i = 0; i < signatures_count; i++)
        if (signatures[i].name && !strcmp(signatures[i].name, "cuCtxCreate_v2"))
            send_record(foe, i, (const uint64_t[]){1, 0, 0}, 3, RECORD_ANSWER, 0);
    let_serve(foe);
}

static void test_formed_records(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(44);

    open_worker();
    for (unsigned int life = 0; life < 8; life++) {
        struct foe foe;

        begin_formed(&foe);
        for (unsigned int i = 0; i < 800 && is_here(&foe); i++) {
            unsigned int number = (unsigned int)g_rand_int_range(rand, 1, (int)signatures_count);
            const struct signature *of = &signatures[number];
            uint64_t words[2048];
            size_t count;

            if (!signature_is_sent(of) || !is_harmless(number) ||
                !form_call(of, words, &count, rand))
                continue;
            g_test_message("%s", of->name);
            send_record(&foe, number, words, count, RECORD_ANSWER, 0);
            /* A call that waits, as some do, is the last one. */
            if (!let_serve(&foe))
                break;
            learn_from_answer(&foe, rand);
        }
        end_foe(&foe);
    }
    close_worker();
}

static void test_wild_records(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(41);

    open_worker();
    for (unsigned int life = 0; life < 40; life++) {
        struct foe foe;

        begin_foe(&foe);
        send_record(&foe, 1, (const uint64_t[]){0}, 1, 0, 0);
        for (unsigned int i = 0; i < 400 && is_here(&foe); i++)
            if (send_wild(&foe, rand) && i % 4 == 0)
                let_serve(&foe);
        end_foe(&foe);
    }
    program_await(start_client("compute", NULL), 0);
    kit_charged(0);
    close_worker();
}

/* The ring itself is rubbish, and is changed while it is read. */
static void test_wild_ring(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(42);

    open_worker();
    for (unsigned int life = 0; life < 20; life++) {
        struct foe foe;

        begin_foe(&foe);
        for (unsigned int i = 0; i < 3000 && is_here(&foe); i++) {
            uint32_t *at = (uint32_t *)(foe.channel->ring + g_rand_int_range(rand, 0, 64) * 32);

            at[0] = g_rand_int_range(rand, 0, 3) ? 64 : g_rand_int(rand);
            at[1] = (uint32_t)g_rand_int_range(rand, 0, 800) | (uint32_t)RECORD_ANSWER << 16;
            if (is_harmless(at[1] & 0xffff))
                atomic_fetch_add(&foe.channel->client.tail,
                                 g_rand_int_range(rand, 0, 100) ? 64 : g_rand_int(rand));
            channel_wake(&foe.channel->worker.state);
            if (i % 16 == 0)
                let_serve(&foe);
        }
        end_foe(&foe);
    }
    close_worker();
}

/* Of a record's header and first words, while the worker reads them. */
struct changer {
    struct foe *foe;
    _Atomic bool is_told;
};

static void *change_ring(void *data)
{
    static const uint32_t sizes[] = {0, 31, 32, 64, 96, 4096, 16384, 16416, 1u << 18, ~0u};
    struct changer *changer = data;
    g_autoptr(GRand) rand = g_rand_new_with_seed(46);

    while (!changer->is_told) {
        uint32_t *at =
            (uint32_t *)(changer->foe->channel->ring + g_rand_int_range(rand, 0, 64) * 32);
        int word = g_rand_int_range(rand, 0, 8);

        at[word] = word ? g_rand_int(rand) : sizes[g_rand_int_range(rand, 0, G_N_ELEMENTS(sizes))];
    }
    return NULL;
}

/* The same by another thread, so that what was checked is another thing when it is used. */
static void test_changing_ring(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(47);

    open_worker();
    for (unsigned int life = 0; life < 20; life++) {
        struct foe foe;
        struct changer changer = {.foe = &foe};
        pthread_t thread;

        begin_formed(&foe);
        g_assert_cmpint(pthread_create(&thread, NULL, change_ring, &changer), ==, 0);
        for (unsigned int i = 0; i < 2000 && is_here(&foe); i++) {
            uint64_t words[8];

            for (size_t k = 0; k < G_N_ELEMENTS(words); k++)
                words[k] = wild_word(rand);
            send_record(&foe, (unsigned int)g_rand_int_range(rand, 1, 740), words,
                        (size_t)g_rand_int_range(rand, 0, 8), RECORD_ANSWER, 0);
        }
        changer.is_told = true;
        pthread_join(thread, NULL);
        end_foe(&foe);
    }
    program_await(start_client("compute", NULL), 0);
    kit_charged(0);
    close_worker();
}

static unsigned int number_of(const char *name)
{
    unsigned int number = 0;

    while (!signatures[number].name || strcmp(signatures[number].name, name))
        number++;
    return number;
}

/* It asks, and looks at no answer: it gets all of them. */
static void test_never_reads(void)
{
    struct foe foe;
    unsigned int number = number_of("cuMemGetInfo_v2"), asked = 1;

    open_worker();
    begin_formed(&foe);
    while (asked < 5000)
        if (send_record(&foe, number, (const uint64_t[]){1, 1}, 2, RECORD_ANSWER, 0))
            asked++;
    while (foe.channel->worker.done < asked)
        g_assert_true(is_here(&foe));
    end_foe(&foe);
    kit_charged(0);
    close_worker();
}

/* Messages beside the channels. */
/* Questions of NVML about what there is not: each has its answer, until one is no question. */
static void test_wild_nvml(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(44);
    struct foe foe;
    int status;

    open_worker();
    start_foe(&foe);
    for (unsigned int i = 0; i < 2000; i++) {
        struct control_message question =
            nvml_question((enum nvml_number)g_rand_int_range(rand, 0, NVML_NUMBERS),
                          (uint32_t)g_rand_int_range(rand, 0, 3), g_rand_int(rand));
        struct nvml_answer answer;

        if (g_rand_int_range(rand, 0, 10) == 0)
            question.bytes = wild_word(rand);
        if (g_rand_int_range(rand, 0, 10) == 0)
            question.address = wild_word(rand);
        g_assert_cmpint(send(foe.socket, &question, sizeof(question), MSG_NOSIGNAL), ==,
                        sizeof(question));
        g_assert_cmpint(recv(foe.socket, &answer, sizeof(answer), 0), ==, sizeof(answer));
        g_assert_cmpuint(answer.bytes, <=, NVML_DATA_MOST);
    }
    send(foe.socket, "nonsense", 8, MSG_NOSIGNAL);
    g_assert_cmpint(waitpid(foe.worker, &status, 0), ==, foe.worker);
    g_assert_cmpint(status, ==, 0);
    close(foe.socket);
    close_worker();
}

static void test_wild_control(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(43);

    open_worker();
    for (unsigned int life = 0; life < 20; life++) {
        struct foe foe;

        begin_foe(&foe);
        for (unsigned int i = 0; i < 300 && is_here(&foe); i++) {
            struct control_message message = {CONTROL_MAGIC,
                                              (uint32_t)g_rand_int_range(rand, 0, 12),
                                              wild_word(rand), wild_word(rand)};
            struct control_reply reply;
            int fd;

            if (g_rand_int_range(rand, 0, 2))
                message.address = ARENA + (uint64_t)g_rand_int_range(rand, 0, 64) * 65536;
            if (g_rand_int_range(rand, 0, 2))
                message.bytes = (uint64_t)g_rand_int_range(rand, 0, 1024) * 4096;
            /* Our own channel ends with its thread. */
            if (message.kind == CONTROL_CHANNEL_END && message.address == ARENA)
                continue;
            send(foe.socket, &message, g_rand_int_range(rand, 0, 50) ? sizeof(message) : 7,
                 MSG_NOSIGNAL);
            descriptor_receive(foe.socket, &reply, sizeof(reply), 0, &fd, 1);
            if (fd >= 0)
                close(fd);
        }
        end_foe(&foe);
    }
    close_worker();
}

static unsigned int files_of(GPid pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fd", pid);
    GDir *dir = g_dir_open(path, 0, NULL);
    unsigned int count = 0;

    while (g_dir_read_name(dir))
        count++;
    g_dir_close(dir);
    return count;
}

/* Only a VM's engine lends memory. A program's file could be of any kind, and the worker takes
 * none. */
static void test_not_lent(void)
{
    const struct control_message message = {CONTROL_MAGIC, CONTROL_SHARE_GUEST, ARENA + 65536,
                                            4096};
    int memory = memfd_create("program", MFD_CLOEXEC);
    struct control_reply reply = {.result = CONTROL_OK};
    unsigned int files;
    struct foe foe;

    g_assert_cmpint(ftruncate(memory, 4096), ==, 0);
    open_worker();
    begin_foe(&foe);
    files = files_of(foe.worker);
    for (unsigned int i = 0; i < 10; i++) {
        descriptor_send(foe.socket, &message, sizeof(message), 0, &memory, 1);
        g_assert_cmpint(recv(foe.socket, &reply, sizeof(reply), 0), ==, sizeof(reply));
        g_assert_cmpuint(reply.result, ==, CONTROL_REFUSED);
    }
    /* It may still have had one of its start's. */
    g_assert_cmpuint(files_of(foe.worker), <=, files);
    end_foe(&foe);
    close(memory);
    close_worker();
}

static enum control_result ask_for_end(const struct foe *foe, uint64_t address)
{
    const struct control_message message = {CONTROL_MAGIC, CONTROL_SHARE_END, address, 0};
    struct control_reply reply = {.result = CONTROL_OK};

    send(foe->socket, &message, sizeof(message), MSG_NOSIGNAL);
    g_assert_cmpint(recv(foe->socket, &reply, sizeof(reply), 0), ==, sizeof(reply));
    return reply.result;
}

/* @asked: calls before it that are answered. */
static void register_memory(struct foe *foe, uint64_t *asked, const char *name, uint64_t address,
                            uint64_t bytes)
{
    g_assert_true(send_record(foe, number_of(name), (const uint64_t[]){address, bytes, 0}, 3,
                              RECORD_ANSWER, 0));
    for (++*asked; foe->channel->worker.done < *asked; g_usleep(100))
        g_assert_true(is_here(foe));
}

/* What the driver has registered is not ended: its pages would be others' while the GPU writes. */
static void test_registered_memory_stays(void)
{
    const uint64_t at = ARENA + (16u << 20);
    uint64_t asked = 1;
    struct foe foe;
    int fd;

    open_worker();
    begin_formed(&foe);
    fd = ask_worker(&foe, CONTROL_SHARE_NEW, at, 65536);
    g_assert_cmpint(fd, >=, 0);
    close(fd);
    register_memory(&foe, &asked, "cuMemHostAlloc", at, 4096);
    register_memory(&foe, &asked, "cuMemHostAlloc", at + 8192, 4096);
    g_assert_cmpuint(ask_for_end(&foe, at), ==, CONTROL_REFUSED);
    register_memory(&foe, &asked, "cuMemFreeHost", at, 1);
    g_assert_cmpuint(ask_for_end(&foe, at), ==, CONTROL_REFUSED);
    register_memory(&foe, &asked, "cuMemFreeHost", at + 8192, 1);
    g_assert_cmpuint(ask_for_end(&foe, at), ==, CONTROL_OK);
    end_foe(&foe);
    close_worker();
}

/* A worker that a sanitizer ends is not one that has ended by its own decision. */
static void tell_sanitizer_from_worker(void)
{
    const char *options = g_getenv("ASAN_OPTIONS");
    g_autofree char *with =
        g_strconcat(options ? options : "", options ? ":" : "", "exitcode=99", NULL);

    g_setenv("ASAN_OPTIONS", with, TRUE);
}

int main(int argc, char **argv)
{
    static const char *const cases[] = {"compute",    "limit",  "large",          "objects",
                                        "threads",    "graphs", "callbacks",      "waiting",
                                        "order",      "posted", "blocking",       "managed",
                                        "facts",      "forked", "rows",           "captured-copies",
                                        "structures", "nodes",  "copy-forms",     "own-memory",
                                        "any-nodes",  "shares", "callback-order", "green-contexts",
                                        "links",      "stress", "local",          "nvml",
                                        "assert",     "ipc",    "signals"};

    g_test_init(&argc, &argv, NULL);
    tell_sanitizer_from_worker();
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *name = g_strconcat("/remote/", cases[i], NULL);

        g_test_add_data_func(name, cases[i], test_case);
    }
    g_test_add_func("/remote/no-worker", test_no_worker);
    g_test_add_func("/remote/host-memory", test_host_memory);
    g_test_add_func("/remote/passed", test_passed);
    g_test_add_func("/remote/printing", test_printing);
    g_test_add_func("/remote/end", test_end);
    g_test_add_func("/remote/without-worker", test_without_worker);
    g_test_add_func("/remote/wild-nvml", test_wild_nvml);
    g_test_add_func("/remote/killed", test_killed);
    g_test_add_func("/remote/lost", test_lost);
    g_test_add_func("/remote/formed-records", test_formed_records);
    g_test_add_func("/remote/wild-records", test_wild_records);
    g_test_add_func("/remote/wild-ring", test_wild_ring);
    g_test_add_func("/remote/changing-ring", test_changing_ring);
    g_test_add_func("/remote/never-reads", test_never_reads);
    g_test_add_func("/remote/wild-control", test_wild_control);
    g_test_add_func("/remote/not-lent", test_not_lent);
    g_test_add_func("/remote/registered-memory-stays", test_registered_memory_stays);
    return g_test_run();
}
