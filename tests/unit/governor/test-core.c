// SPDX-License-Identifier: MIT
/*
 * The parts of the core without a time of their own: ledger, budget, settings, plausibility of a
 * page.
 */
#include "budget.h"
#include "clock.h"
#include "governor_protocol.h"
#include "ledger.h"
#include "member_state.h"
#include "sample.h"
#include "settings.h"
#include "think.h"

#include <errno.h>
#include <string.h>

#define MEMBERS 64

/*
 * Whatever 64 members request and return, and whichever die, the limit holds and the sums are
 * right.
 */
static void test_ledger(void)
{
    struct ledger ledger = {.limit = 1000, .spill_limit = 300};
    struct holding holdings[MEMBERS] = {0};
    uint64_t refused = 0, spills = 0;

    for (unsigned round = 0; round < 100000; round++) {
        struct holding *holding = &holdings[g_test_rand_int_range(0, MEMBERS)];
        uint64_t bytes = (uint64_t)g_test_rand_int_range(1, 60), spilled = 0;
        uint64_t device = 0, spilt = 0;

        switch (g_test_rand_int_range(0, 8)) {
        case 0:
            ledger_forget(&ledger, holding);
            break;
        case 1:
            if (holding->device >= bytes)
                g_assert_true(ledger_release(&ledger, holding, bytes, 0));
            else
                g_assert_false(ledger_release(&ledger, holding, bytes, 0));
            break;
        default:
            refused += ledger_reserve(&ledger, holding, bytes, round % 2, &spilled) == ENOMEM;
            spills += spilled > 0;
        }
        for (unsigned i = 0; i < MEMBERS; i++) {
            device += holdings[i].device;
            spilt += holdings[i].spilled;
        }
        g_assert_cmpuint(device, ==, ledger.used);
        g_assert_cmpuint(spilt, ==, ledger.spill_used);
        g_assert_cmpuint(ledger.used, <=, ledger.limit);
        g_assert_cmpuint(ledger.spill_used, <=, ledger.spill_limit);
    }
    g_assert_cmpuint(refused, >, 0);
    g_assert_cmpuint(spills, >, 0);
}

static void test_ledger_abuse(void)
{
    struct ledger ledger = {.limit = 1000};
    struct holding one = {0}, two = {0};
    uint64_t spilled;

    g_assert_cmpint(ledger_reserve(&ledger, &one, 0, false, &spilled), ==, EINVAL);
    g_assert_cmpint(ledger_reserve(&ledger, &one, UINT64_MAX, true, &spilled), ==, EINVAL);
    g_assert_cmpint(ledger_reserve(&ledger, &one, UINT64_MAX - 500, true, &spilled), ==, EINVAL);
    g_assert_cmpint(ledger_reserve(&ledger, &one, 1000, false, &spilled), ==, 0);
    g_assert_cmpint(ledger_reserve(&ledger, &two, 1, false, &spilled), ==, ENOMEM);
    g_assert_false(ledger_release(&ledger, &two, 1, 0));
    g_assert_false(ledger_release(&ledger, &one, 1, 2));
    g_assert_false(ledger_release(&ledger, &one, UINT64_MAX, 1));
    /* A limit below what is in use: nothing more is granted until enough has been returned. */
    ledger.limit = 500;
    g_assert_cmpint(ledger_reserve(&ledger, &two, 1, false, &spilled), ==, ENOMEM);
    g_assert_true(ledger_release(&ledger, &one, 501, 0));
    g_assert_cmpint(ledger_reserve(&ledger, &two, 1, false, &spilled), ==, 0);
    g_assert_false(ledger_adopt(&ledger, &two, UINT64_MAX, 0));
    g_assert_cmpuint(ledger.used, ==, 500);
}

#define NAMES 12

/* How often each member has each object, kept by the test. */
struct objects_model {
    unsigned times[MEMBERS][NAMES];
    uint64_t bytes[NAMES];
};

static bool has_any(const struct objects_model *model, unsigned name)
{
    for (unsigned i = 0; i < MEMBERS; i++) {
        if (model->times[i][name])
            return true;
    }
    return false;
}

static void objects_step(struct objects_model *model, struct ledger *ledger,
                         struct holding *holdings)
{
    unsigned who = (unsigned)g_test_rand_int_range(0, MEMBERS);
    unsigned name = (unsigned)g_test_rand_int_range(0, NAMES);
    const struct governor_object_name key = {.device = name % 2, .inode = name / 2};
    uint64_t bytes = (uint64_t)g_test_rand_int_range(1, 100), spilled = 0;
    bool has = has_any(model, name), shared = false;

    switch (g_test_rand_int_range(0, 10)) {
    case 0:
        ledger_forget(ledger, &holdings[who]);
        memset(model->times[who], 0, sizeof(model->times[who]));
        return;
    case 1:
    case 2:
        /* Whether it is refused is not checked here. */
        if (ledger_reserve(ledger, &holdings[who], bytes, true, &spilled) == 0)
            shared = ledger_share(ledger, &holdings[who], &key, bytes, spilled) == 0;
        break;
    case 3:
    case 4:
    case 5:
        shared = ledger_attach(ledger, &holdings[who], &key, bytes) == 0;
        g_assert_true(shared || !has || bytes > model->bytes[name]);
        break;
    default:
        g_assert_cmpint(ledger_detach(ledger, &holdings[who], &key), ==,
                        model->times[who][name] > 0);
        model->times[who][name] -= model->times[who][name] > 0;
    }
    model->times[who][name] += shared;
    if (shared && (!has || bytes > model->bytes[name]))
        model->bytes[name] = bytes;
}

/* However often and by whomever objects are shared, each is charged once, as long as anybody has
 * it, and as large as anybody said. */
static void test_objects(void)
{
    struct ledger ledger = {.limit = 700, .spill_limit = 100};
    struct holding holdings[MEMBERS] = {0};
    struct objects_model model = {0};

    for (unsigned round = 0; round < 100000; round++) {
        uint64_t sum = 0;

        objects_step(&model, &ledger, holdings);
        for (unsigned i = 0; i < NAMES; i++)
            sum += has_any(&model, i) ? model.bytes[i] : 0;
        for (unsigned i = 0; i < MEMBERS; i++)
            sum += holdings[i].device + holdings[i].spilled;
        g_assert_cmpuint(sum, ==, ledger.used + ledger.spill_used);
        g_assert_cmpuint(ledger.used, <=, ledger.limit);
        g_assert_cmpuint(ledger.spill_used, <=, ledger.spill_limit);
    }
    for (unsigned i = 0; i < MEMBERS; i++)
        ledger_forget(&ledger, &holdings[i]);
    g_assert_cmpuint(ledger.used, ==, 0);
    g_assert_cmpuint(ledger.spill_used, ==, 0);
    g_assert_null(ledger.objects);
}

/* Remembered objects are limited, for a member and for its slice; the limit loses nothing. */
static void test_objects_bounds(void)
{
    struct ledger ledger = {0};
    struct holding holdings[10] = {0};
    struct governor_object_name name = {0};
    uint64_t spilled;
    unsigned fit = 0;

    for (unsigned i = 0; i < 10; i++) {
        for (unsigned j = 0; j < LEDGER_MEMBER_OBJECTS + 10; j++) {
            name.inode++;
            fit += ledger_attach(&ledger, &holdings[i], &name, 1) == 0;
        }
        g_assert_cmpuint(fit, ==, MIN((i + 1) * LEDGER_MEMBER_OBJECTS, LEDGER_SLICE_OBJECTS));
        g_assert_cmpuint(ledger.used, ==, fit);
    }
    g_assert_cmpint(ledger_reserve(&ledger, &holdings[9], 5, false, &spilled), ==, 0);
    g_assert_cmpint(ledger_share(&ledger, &holdings[9], &name, 5, 0), ==, ENOSPC);
    g_assert_cmpuint(holdings[9].device, ==, 5);
    for (unsigned i = 0; i < 10; i++)
        ledger_forget(&ledger, &holdings[i]);
    g_assert_cmpuint(ledger.used, ==, 0);
    g_assert_cmpuint(ledger.objects_held, ==, 0);
    /* Numbers that are possible each, and not together. */
    for (unsigned i = 0; i < LEDGER_MEMBER_OBJECTS; i++) {
        name.inode++;
        ledger_attach(&ledger, &holdings[0], &name, 1ull << 52);
    }
    g_assert_cmpuint(ledger.used, <=, (1ull << 62) + (1ull << 52));
    g_assert_false(ledger_adopt(&ledger, &holdings[1], 1, 0));
    ledger_forget(&ledger, &holdings[0]);
    g_assert_cmpuint(ledger.used, ==, 0);
}

/* What a driver has for itself is there already: it is charged, and leaves less for others. */
static void test_driver(void)
{
    struct ledger ledger = {.limit = 1000};
    struct holding one = {0}, two = {0};
    uint64_t spilled;

    g_assert_cmpint(ledger_reserve(&ledger, &one, 600, false, &spilled), ==, 0);
    g_assert_true(ledger_set_driver(&ledger, &one, 300));
    g_assert_true(ledger_set_driver(&ledger, &two, 50));
    g_assert_cmpint(ledger_reserve(&ledger, &two, 100, false, &spilled), ==, ENOMEM);
    g_assert_true(ledger_set_driver(&ledger, &one, 250));
    g_assert_cmpint(ledger_reserve(&ledger, &two, 100, false, &spilled), ==, 0);
    g_assert_true(ledger_set_driver(&ledger, &two, 5000));
    g_assert_cmpuint(ledger.used, ==, 600 + 250 + 100 + 5000);
    g_assert_cmpuint(ledger.driver, ==, 5250);
    g_assert_false(ledger_set_driver(&ledger, &one, UINT64_MAX));
    /* It is not what the member can give back, or share. */
    g_assert_false(ledger_release(&ledger, &two, 101, 0));
    ledger_forget(&ledger, &two);
    g_assert_cmpuint(ledger.used, ==, 850);
    ledger_forget(&ledger, &one);
    g_assert_cmpuint(ledger.used, ==, 0);
    g_assert_cmpuint(ledger.driver, ==, 0);
}

static void test_budget(void)
{
    struct budget budget;

    budget_init(&budget, 0.2, 1000, 0);
    g_assert_cmpfloat(budget_balance(&budget, 100000), ==, 1000);
    budget_spend(&budget, 3000);
    g_assert_cmpuint(budget_when(&budget, 500, 100000), ==, 100000 + 12500 + 1);
    g_assert_cmpfloat(budget_balance(&budget, 110000), ==, 0);
    /* Debt stays when the rate changes, and time that goes back counts as none. */
    budget_spend(&budget, 100);
    budget_set(&budget, 0.1, 500, 110000);
    g_assert_cmpfloat(budget_balance(&budget, 1000), ==, -100);
    g_assert_cmpfloat(budget_balance(&budget, 111000), ==, 0);
    budget_set(&budget, 0, 500, 111000);
    g_assert_cmpuint(budget_when(&budget, 1, 111000), ==, TIME_NEVER);
    /* Work that is longer than the budget is deep keeps to the rate, however often it is looked at.
     */
    budget_init(&budget, 0.5, 100, 0);
    budget_hold(&budget, 1000);
    for (uint64_t now = 0; now <= 1000; now += 10)
        budget_balance(&budget, now);
    budget_spend(&budget, 1000);
    budget_hold(&budget, 0);
    g_assert_cmpfloat(budget_balance(&budget, 1000), ==, 100 + 500 - 1000);
}

/* Bursts are worth waiting for within, single requests that are far apart are not. */
static void test_think(void)
{
    struct think bursts, single;

    think_init(&bursts);
    think_init(&single);
    for (unsigned i = 0; i < 100; i++) {
        think_learn(&bursts, i % 4 ? 50 * NS_PER_US : 40 * NS_PER_MS, NS_PER_MS);
        think_learn(&single, 40 * NS_PER_MS, NS_PER_MS);
        if (i >= 50)
            g_assert_cmpuint(think_patience(&bursts, 500 * NS_PER_US), >, 50 * NS_PER_US);
    }
    g_assert_cmpuint(think_patience(&bursts, 500 * NS_PER_US), <, 200 * NS_PER_US);
    g_assert_cmpuint(think_patience(&single, 500 * NS_PER_US), ==, 0);
}

static bool parse_slice(struct slice_settings *settings, const char *text, char **message)
{
    GError *error = NULL;
    bool ok = slice_settings_parse(settings, text, strlen(text), &error);

    *message = ok ? NULL : g_strdup(error->message);
    g_clear_error(&error);
    return ok;
}

static void test_settings(void)
{
    g_autofree char *long_word = NULL;
    struct slice_settings settings = {0}, before;
    char *message;

    g_assert_true(parse_slice(&settings, "[slice]\n", &message));
    g_assert_cmpuint(settings.weight, ==, 100);
    g_assert_true(settings.guaranteed);
    g_assert_cmpuint(settings.owner, ==, SETTINGS_OWNER_NONE);
    g_assert_cmpuint(settings.engines, ==, 0);
    g_assert_true(parse_slice(
        &settings, "[slice]\nengines=graphics,compute,transfer,decode,encode\n", &message));
    g_assert_cmpuint(settings.engines, ==, 0);
    g_assert_true(parse_slice(&settings,
                              "[slice]\nweight=7\ncap=20\nhard=true\npriority=3\nvram=4096\n"
                              "spill=1\nresident=1024\nbest-effort=true\nshare=250000\n"
                              "guaranteed=false\nowner=1000\nengines=encode,"
                              "compute\npartners=slurm:7\n"
                              "not-known=1\n",
                              &message));
    g_assert_cmpuint(settings.weight, ==, 7);
    g_assert_cmpuint(settings.cap, ==, 20);
    g_assert_true(settings.hard);
    g_assert_cmpuint(settings.priority, ==, 3);
    g_assert_cmpuint(settings.vram, ==, 4096);
    g_assert_cmpuint(settings.spill, ==, 1);
    g_assert_cmpuint(settings.resident, ==, 1024);
    g_assert_true(settings.best_effort);
    g_assert_true(slice_settings_moves(&settings));
    g_assert_cmpuint(settings.share_ppm, ==, 250000);
    g_assert_false(settings.guaranteed);
    g_assert_cmpuint(settings.owner, ==, 1000);
    g_assert_cmpstr(settings.partners, ==, "slurm:7");
    g_assert_cmpuint(settings.engines, ==, GOVERNOR_ENGINE_COMPUTE | GOVERNOR_ENGINE_ENCODE);
    before = settings;
    g_assert_true(parse_slice(&settings, "[slice]\nvram=4096\n", &message));
    g_assert_false(slice_settings_moves(&settings));
    settings = before;
    for (const char *const *bad =
             (const char *const[]){
                 "", "[slice]\nresident=1G\n", "weight=1\n", "[slice]\nweight=0\n",
                 "[slice]\nweight=x\n", "[slice]\nweight=-1\n", "[slice]\ncap=101\n",
                 "[slice]\nhard=yes\n", "[slice]\nengines=compute,\n", "[slice]\npartners=a b\n",
                 "[slice]\npriority=16\n", "[slice]\nvram=99999999999999999999\n", "[gpu]\n", NULL};
         *bad; bad++) {
        g_assert_false(parse_slice(&settings, *bad, &message));
        g_assert_nonnull(message);
        g_free(message);
        g_assert_cmpmem(&before, sizeof(before), &settings, sizeof(settings));
    }
    g_assert_false(parse_slice(&settings, "[slice]\ncap=101\n", &message));
    g_assert_cmpstr(message, ==, "cap=101: must be a number from 0 to 100");
    g_free(message);
    long_word = g_strdup_printf("[slice]\npartners=%0*d\n", SETTINGS_PARTNERS_MAX + 1, 0);
    g_assert_false(parse_slice(&settings, long_word, &message));
    g_assert_cmpmem(&before, sizeof(before), &settings, sizeof(settings));
    g_free(message);
}

static void test_gpu_settings(void)
{
    static const char *const names[] = {"shares", "best-effort", "equal", "fixed"};
    struct gpu_settings settings;

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *text = g_strdup_printf("[gpu]\nvram=5\npolicy=%s\n", names[i]);

        g_assert_true(gpu_settings_parse(&settings, text, strlen(text), NULL));
        g_assert_cmpint(settings.policy, ==, i);
        g_assert_cmpstr(gpu_policy_name(settings.policy), ==, names[i]);
    }
    g_assert_false(gpu_settings_parse(&settings, "[gpu]\npolicy=no\n", 16, NULL));
    g_assert_cmpint(settings.policy, ==, POLICY_FIXED);
}

/* Counters that go back or leap, and times in the future. */
static void test_sample(void)
{
    struct governor_class_usage page = {0};
    struct sample sample = {0};
    uint64_t now = 1000 * NS_PER_S;

    page.gpu_ns = 100;
    page.submissions = 5;
    sample_take(&sample, &page, NULL, now);
    page.gpu_ns = 50;
    page.submissions = UINT64_MAX;
    page.in_flight_ns = UINT64_MAX;
    page.began_at_ns = page.ended_at_ns = UINT64_MAX;
    sample_take(&sample, &page, NULL, now);
    g_assert_cmpuint(sample.gpu_ns, ==, 100);
    g_assert_cmpuint(sample.submissions, <, UINT64_MAX / 2);
    g_assert_cmpuint(sample.in_flight_ns, <=, 60 * NS_PER_S);
    g_assert_cmpuint(sample.ended_at_ns, <=, now);
    g_assert_cmpuint(sample_elapsed(&sample, now), ==, 0);
    page.gpu_ns = UINT64_MAX;
    sample_take(&sample, &page, NULL, now);
    g_assert_cmpuint(sample_spent(&sample, now + 1), <, 2 * 3600 * NS_PER_S);
}

/*
 * A member and the arbiter count the same of what is in flight, however long it has been. Otherwise
 * no lease would ever be open for a process whose work in flight waits for its next submission.
 */
static void test_spent(void)
{
    static const uint64_t seconds[] = {0, 1, 9, 10, 11, 600, 1000000};
    const uint64_t began = 5000 * NS_PER_S, estimate = 4 * NS_PER_MS, used = 7 * NS_PER_MS;
    struct governor_class_usage page = {
        .gpu_ns = used, .in_flight_ns = estimate, .began_at_ns = began, .ended_at_ns = began - 1};
    struct lane lane = {.gpu_ns = used,
                        .in_flight_ns = estimate,
                        .in_flight = 1,
                        .began_at_ns = began,
                        .ended_at_ns = began - 1};

    for (guint i = 0; i < G_N_ELEMENTS(seconds); i++) {
        uint64_t now = began + seconds[i] * NS_PER_S;
        struct sample sample = {0};

        sample_take(&sample, &page, NULL, now);
        g_assert_cmpuint(turn_spent(&lane, now), ==, sample_spent(&sample, now));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/core/ledger", test_ledger);
    g_test_add_func("/governor/core/ledger-abuse", test_ledger_abuse);
    g_test_add_func("/governor/core/objects", test_objects);
    g_test_add_func("/governor/core/objects-bounds", test_objects_bounds);
    g_test_add_func("/governor/core/driver", test_driver);
    g_test_add_func("/governor/core/budget", test_budget);
    g_test_add_func("/governor/core/think", test_think);
    g_test_add_func("/governor/core/settings", test_settings);
    g_test_add_func("/governor/core/gpu-settings", test_gpu_settings);
    g_test_add_func("/governor/core/sample", test_sample);
    g_test_add_func("/governor/core/spent", test_spent);
    return g_test_run();
}
