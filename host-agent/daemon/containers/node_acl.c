/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/containers/node_acl.h"

#include <acl/libacl.h>
#include <errno.h>
#include <sys/acl.h>

G_DEFINE_AUTO_CLEANUP_FREE_FUNC(acl_t, acl_free, NULL)

static gboolean set_acl_error(const char *path, uid_t uid, GError **error)
{
    int code = errno;

    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code),
                "the ACL of %s cannot be changed for user %u: %s", path, (guint)uid,
                g_strerror(code));
    return FALSE;
}

static gboolean is_of(acl_entry_t entry, acl_tag_t wanted, uid_t uid)
{
    acl_tag_t tag;
    uid_t *of;
    gboolean same;

    if (acl_get_tag_type(entry, &tag) < 0 || tag != wanted)
        return FALSE;
    if (wanted != ACL_USER)
        return TRUE;
    of = acl_get_qualifier(entry);
    same = of && *of == uid;
    if (of)
        acl_free(of);
    return same;
}

/* @uid: for ACL_USER only. NULL: none. */
static acl_entry_t find_entry(acl_t acl, acl_tag_t tag, uid_t uid)
{
    acl_entry_t entry;

    for (int rc = acl_get_entry(acl, ACL_FIRST_ENTRY, &entry); rc == 1;
         rc = acl_get_entry(acl, ACL_NEXT_ENTRY, &entry))
        if (is_of(entry, tag, uid))
            return entry;
    return NULL;
}

static gboolean is_named(acl_t acl)
{
    acl_entry_t entry;

    for (int rc = acl_get_entry(acl, ACL_FIRST_ENTRY, &entry); rc == 1;
         rc = acl_get_entry(acl, ACL_NEXT_ENTRY, &entry)) {
        acl_tag_t tag;

        if (acl_get_tag_type(entry, &tag) == 0 && (tag == ACL_USER || tag == ACL_GROUP))
            return TRUE;
    }
    return FALSE;
}

static guint perms_of(acl_entry_t entry)
{
    static const acl_perm_t all[] = {ACL_READ, ACL_WRITE, ACL_EXECUTE};
    acl_permset_t set;
    guint perms = 0;

    if (acl_get_permset(entry, &set) == 0)
        for (guint i = 0; i < G_N_ELEMENTS(all); i++)
            perms |= acl_get_perm(set, all[i]) == 1 ? all[i] : 0;
    return perms;
}

static gboolean set_perms(acl_entry_t entry, guint perms)
{
    acl_permset_t set;

    return acl_get_permset(entry, &set) == 0 && acl_clear_perms(set) == 0 &&
           acl_add_perm(set, perms) == 0;
}

static acl_entry_t new_entry(acl_t *acl, acl_tag_t tag)
{
    acl_entry_t entry;

    return acl_create_entry(acl, &entry) == 0 && acl_set_tag_type(entry, tag) == 0 ? entry : NULL;
}

/* The mask is also the mode's middle part, which udev sets and compares. */
static gboolean widen_mask(acl_t *acl)
{
    acl_entry_t mask = find_entry(*acl, ACL_MASK, 0);
    acl_entry_t group = find_entry(*acl, ACL_GROUP_OBJ, 0);
    guint perms = mask ? perms_of(mask) : group ? perms_of(group) : 0;

    if (!mask)
        mask = new_entry(acl, ACL_MASK);
    return mask && set_perms(mask, perms | ACL_READ | ACL_WRITE);
}

/* Without named entries there is no mask: the mode is the one from before. */
static gboolean drop_mask(acl_t acl)
{
    acl_entry_t mask = find_entry(acl, ACL_MASK, 0);
    acl_entry_t group = find_entry(acl, ACL_GROUP_OBJ, 0);

    if (!mask || !group || is_named(acl))
        return TRUE;
    return set_perms(group, perms_of(group) & perms_of(mask)) && acl_delete_entry(acl, mask) == 0;
}

gboolean node_acl_has(const char *path, uid_t uid)
{
    g_auto(acl_t) acl = acl_get_file(path, ACL_TYPE_ACCESS);

    return acl && find_entry(acl, ACL_USER, uid);
}

gboolean node_acl_add(const char *path, uid_t uid, GError **error)
{
    g_auto(acl_t) acl = acl_get_file(path, ACL_TYPE_ACCESS);
    acl_entry_t entry = acl ? new_entry(&acl, ACL_USER) : NULL;

    if (entry && acl_set_qualifier(entry, &uid) == 0 &&
        set_perms(entry, ACL_READ | ACL_WRITE | ACL_EXECUTE) && widen_mask(&acl) &&
        acl_set_file(path, ACL_TYPE_ACCESS, acl) == 0)
        return TRUE;
    return set_acl_error(path, uid, error);
}

gboolean node_acl_remove(const char *path, uid_t uid, gboolean hand_over, GError **error)
{
    g_auto(acl_t) acl = acl_get_file(path, ACL_TYPE_ACCESS);
    acl_entry_t entry = acl ? find_entry(acl, ACL_USER, uid) : NULL;
    gboolean ok;

    if (!acl)
        return errno == ENOENT || set_acl_error(path, uid, error);
    if (!entry || !(perms_of(entry) & ACL_EXECUTE))
        return TRUE;
    ok = hand_over ? set_perms(entry, ACL_READ | ACL_WRITE)
                   : acl_delete_entry(acl, entry) == 0 && drop_mask(acl);
    return (ok && acl_set_file(path, ACL_TYPE_ACCESS, acl) == 0) || set_acl_error(path, uid, error);
}
