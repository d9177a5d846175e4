/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/host/accounts.h"

#include <errno.h>
#include <gio/gio.h>
#include <grp.h>
#include <pwd.h>

/* One that was not found may come with a directory server that is not reached yet. */
#define RETRY_MIN_S 1u
#define RETRY_MAX_S 300u
/* Groups get other members, of which nobody tells. */
#define LOOK_AGAIN_S 300u

/* More than a user's entry needs: names, a home, a shell. A group may have any number of members.
 */
#define ENTRY_MAX (64u << 10)
#define GROUP_MAX (16u << 20)

/**
 * Account - of a user or a group
 * @error: 0; ENOENT: the host has none of that name; else why it can't tell
 * @uid: the user's
 * @members: the group's; NULL: not known
 */
typedef struct {
    int error;
    uid_t uid;
    GStrv members;
} Account;

/**
 * Accounts
 * @by_name: to Account
 * @looking: the look-up that is pending
 * @again: source of the next one; 0: none
 * @delay: until it, in seconds, while one was not found; 0: all were
 */
struct Accounts {
    GStrv names;
    GHashTable *by_name;
    GCancellable *looking;
    guint again;
    guint delay;
    void (*changed)(void *data);
    void *changed_data;
};

static UserLookup user_lookup;
static GroupLookup group_lookup;

void accounts_set_user_lookup(UserLookup func)
{
    user_lookup = func;
}

void accounts_set_group_lookup(GroupLookup func)
{
    group_lookup = func;
}

/* getpwnam(3) and getgrnam(3) have several errors for an unknown name. */
static int error_of(const void *found, int error)
{
    return found ? 0 : !error || error == ESRCH ? ENOENT : error;
}

static int look_up_user(const char *name, uid_t *uid)
{
    g_autofree char *text = g_malloc(ENTRY_MAX);
    struct passwd entry, *found = NULL;
    int error;

    if (user_lookup)
        return user_lookup(name, uid);
    do
        error = getpwnam_r(name, &entry, text, ENTRY_MAX, &found);
    while (error == EINTR);
    if (found)
        *uid = found->pw_uid;
    return error_of(found, error);
}

static int look_up_group(const char *name, GStrv *members)
{
    g_autofree char *text = NULL;
    struct group entry, *found = NULL;
    int error = 0;

    if (group_lookup)
        return group_lookup(name, members);
    for (gsize size = ENTRY_MAX; size <= GROUP_MAX; size *= 2) {
        text = g_realloc(text, size);
        do
            error = getgrnam_r(name, &entry, text, size, &found);
        while (error == EINTR);
        if (error != ERANGE)
            break;
    }
    if (found)
        *members = g_strdupv(entry.gr_mem);
    return error_of(found, error);
}

static void account_free(void *data)
{
    Account *account = data;

    g_strfreev(account->members);
    g_free(account);
}

static GHashTable *table_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, account_free);
}

gboolean account_is_group(const char *name)
{
    return name[0] == '@' && name[1];
}

static void find_user(GHashTable *found, const char *name)
{
    Account *account = g_new0(Account, 1);

    account->error = look_up_user(name, &account->uid);
    g_hash_table_insert(found, g_strdup(name), account);
}

/* A group that there is not has no members. */
static void find_group(GHashTable *found, const char *name)
{
    Account *account = g_new0(Account, 1);

    account->error = look_up_group(name + 1, &account->members);
    if (account->error == ENOENT)
        account->members = g_new0(char *, 1);
    for (guint i = 0; account->members && account->members[i]; i++)
        find_user(found, account->members[i]);
    g_hash_table_insert(found, g_strdup(name), account);
}

static void find_all(GTask *task, void *source, void *data, GCancellable *cancellable)
{
    char **names = data;
    GHashTable *found = table_new();

    (void)source;
    (void)cancellable;
    for (guint i = 0; names[i]; i++) {
        if (account_is_group(names[i]))
            find_group(found, names[i]);
        else
            find_user(found, names[i]);
    }
    g_task_return_pointer(task, found, (GDestroyNotify)g_hash_table_unref);
}

static void tell_of_failure(const char *name, int error)
{
    g_message("cannot look up %s %s of a tenant: %s; vgpud tries again",
              account_is_group(name) ? "group" : "user", account_is_group(name) ? name + 1 : name,
              g_strerror(error));
}

static void tell_if_emptied(const char *name, const Account *account, const Account *before)
{
    gboolean is_empty = account->members && !*account->members;

    if (is_empty && !(before && before->members && !*before->members))
        g_message("users=%s of a tenant gives nobody access: \"getent group %s\" shows no members",
                  name, name + 1);
}

/* TRUE: all were found. */
static gboolean take_found(Accounts *accounts, GHashTable *found)
{
    gboolean complete = TRUE;
    GHashTableIter iter;
    void *name, *value;

    g_hash_table_iter_init(&iter, found);
    while (g_hash_table_iter_next(&iter, &name, &value)) {
        const Account *account = value;
        const Account *before = g_hash_table_lookup(accounts->by_name, name);
        gboolean is_known = !account->error || account->error == ENOENT;

        complete = complete && !account->error;
        tell_if_emptied(name, account, before);
        if (!is_known && !accounts->delay)
            tell_of_failure(name, account->error);
        if (!is_known && before)
            continue;
        g_hash_table_iter_steal(&iter);
        g_hash_table_insert(accounts->by_name, name, value);
    }
    return complete;
}

static gboolean has_group(const Accounts *accounts)
{
    for (guint i = 0; accounts->names[i]; i++)
        if (account_is_group(accounts->names[i]))
            return TRUE;
    return FALSE;
}

static void begin_look_up(Accounts *accounts);

static gboolean look_again(void *data)
{
    Accounts *accounts = data;

    accounts->again = 0;
    begin_look_up(accounts);
    return G_SOURCE_REMOVE;
}

static void looked_up(GObject *source, GAsyncResult *answer, void *data)
{
    g_autoptr(GHashTable) found = g_task_propagate_pointer(G_TASK(answer), NULL);
    Accounts *accounts = data;

    (void)source;
    /* Freed meanwhile, or asked again. */
    if (!found)
        return;
    if (take_found(accounts, found))
        accounts->delay = 0;
    else
        accounts->delay = CLAMP(2 * accounts->delay, RETRY_MIN_S, RETRY_MAX_S);
    if (accounts->delay || has_group(accounts))
        accounts->again = g_timeout_add_seconds(accounts->delay ? accounts->delay : LOOK_AGAIN_S,
                                                look_again, accounts);
    accounts->changed(accounts->changed_data);
}

/* What is pending is obsolete. */
static void end_look_up(Accounts *accounts)
{
    g_clear_handle_id(&accounts->again, g_source_remove);
    g_cancellable_cancel(accounts->looking);
    g_clear_object(&accounts->looking);
}

static void begin_look_up(Accounts *accounts)
{
    g_autoptr(GTask) task = NULL;

    end_look_up(accounts);
    if (!accounts->names[0])
        return;
    accounts->looking = g_cancellable_new();
    task = g_task_new(NULL, accounts->looking, looked_up, accounts);
    g_task_set_task_data(task, g_strdupv(accounts->names), (GDestroyNotify)g_strfreev);
    g_task_run_in_thread(task, find_all);
}

void accounts_look_up(Accounts *accounts, GStrv names)
{
    g_strfreev(accounts->names);
    accounts->names = names;
    accounts->delay = 0;
    begin_look_up(accounts);
}

const char *const *accounts_members(const Accounts *accounts, const char *group)
{
    const Account *account = g_hash_table_lookup(accounts->by_name, group);

    return account ? (const char *const *)account->members : NULL;
}

gboolean accounts_add_uid(const Accounts *accounts, const char *user, GArray *uids)
{
    const Account *account = g_hash_table_lookup(accounts->by_name, user);

    if (account && !account->error)
        g_array_append_val(uids, account->uid);
    return account && (!account->error || account->error == ENOENT);
}

Accounts *accounts_new(void (*changed)(void *data), void *data)
{
    Accounts *accounts = g_new0(Accounts, 1);

    accounts->by_name = table_new();
    accounts->changed = changed;
    accounts->changed_data = data;
    return accounts;
}

void accounts_free(Accounts *accounts)
{
    end_look_up(accounts);
    g_strfreev(accounts->names);
    g_hash_table_unref(accounts->by_name);
    g_free(accounts);
}
