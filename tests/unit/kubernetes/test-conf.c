/* SPDX-License-Identifier: MIT */
/* /etc/vgpu/kubernetes.conf: what is read, and the sentence about what is wrong. */
#include <string.h>
#include <glib/gstdio.h>

#include "fleet/kubernetes/conf.h"

static KubeConf *read_text(const char *text, GError **error)
{
    g_autofree char *dir = g_dir_make_tmp("vgpu-XXXXXX", NULL);
    g_autofree char *vgpu = g_build_filename(dir, "etc/vgpu", NULL);
    g_autofree char *path = g_build_filename(vgpu, "kubernetes.conf", NULL);
    g_autofree char *etc = g_build_filename(dir, "etc", NULL);
    g_autoptr(HostRoot) root = NULL;
    KubeConf *conf;

    g_mkdir_with_parents(vgpu, 0755);
    if (text)
        g_assert_true(g_file_set_contents(path, text, -1, NULL));
    root = host_root_new(dir, NULL);
    conf = kube_conf_read(root, error);
    g_unlink(path);
    g_rmdir(vgpu);
    g_rmdir(etc);
    g_rmdir(dir);
    return conf;
}

static void check_wrong(const char *text, const char *words)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KubeConf) conf = read_text(text, &error);

    g_assert_null(conf);
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, words));
    g_assert_nonnull(strstr(error->message, KUBE_CONF_PATH));
}

static void test_defaults(void)
{
    g_autoptr(KubeConf) conf = read_text(NULL, NULL);

    g_assert_cmpstr(conf->kubelet, ==, "/var/lib/kubelet");
    g_assert_true(conf->with_cdi);
    g_assert_null(conf->url);
    g_assert_cmpuint(conf->seats->len, ==, 0);
    g_assert_cmpuint(conf->forgotten_after, ==, 300);
    g_assert_nonnull(conf->node);
}

static void test_all(void)
{
    g_autoptr(KubeConf) conf =
        read_text("[kubelet]\nnode=n1\nfolder=/k\ncdi=no\ntenant=namespace\nforgotten-after=7\n"
                  "[api]\nurl=https://api:6443//\nca=/ca\ncertificate=/c\nkey=/k\n"
                  "[seats a100-80g]\ntype=quarter\ncount=4\ndoor=native\n"
                  "class=burstable\npolicy=spread\n"
                  "[seats l4]\ntype=half\ncount=2\n",
                  NULL);
    const Seats *seats = kube_conf_seats(conf, "a100-80g");

    g_assert_cmpstr(conf->node, ==, "n1");
    g_assert_cmpstr(conf->kubelet, ==, "/k");
    g_assert_false(conf->with_cdi);
    g_assert_true(conf->tenant_is_namespace);
    g_assert_null(conf->tenant);
    g_assert_cmpuint(conf->forgotten_after, ==, 7);
    g_assert_cmpstr(conf->url, ==, "https://api:6443");
    g_assert_cmpuint(conf->watch_seconds, ==, 540);
    g_assert_cmpstr(seats->type, ==, "quarter");
    g_assert_cmpuint(seats->count, ==, 4);
    g_assert_cmpstr(seats->door, ==, "native");
    g_assert_cmpstr(seats->class, ==, "burstable");
    g_assert_true(seats->spread);
    g_assert_cmpstr(kube_conf_seats(conf, "l4")->door, ==, "auto");
    g_assert_null(kube_conf_seats(conf, "other"));
}

static void test_wrong(void)
{
    check_wrong("[kubelet]\nforgotten-after=0\n", "forgotten-after=0: seconds, from 1 to 86400");
    check_wrong("[kubelett]\n", "no group [kubelett]");
    check_wrong("[kubelet]\nnod=x\n", "no key \"nod\"");
    check_wrong("[kubelet]\nfolder=k\n", "no absolute path");
    check_wrong("[kubelet]\ncdi=perhaps\n", "allowed are yes and no");
    check_wrong("[api]\nurl=http://x\ntoken-file=/t\n", "needs url=https");
    check_wrong("[api]\nurl=https://x\n", "needs certificate= or token-file=");
    check_wrong("[api]\nurl=https://x\ntoken-file=/t\nwatch-seconds=0\n", "seconds, from 1 to");
    check_wrong("[seats m]\ntype=quarter\n", "needs count=");
    check_wrong("[seats m]\ntype=quarter\ncount=65\n", "needs count=");
    check_wrong("[seats m]\ncount=4\n", "needs the name of a model and type=");
    check_wrong("[seats M]\ntype=quarter\ncount=4\n", "needs the name of a model");
    check_wrong("[seats m]\ntype=quarter\ncount=4\ndoor=vm\n",
                "allowed are auto, guarded and native");
    check_wrong("[seats m]\ntype=quarter\ncount=4\npolicy=best\n", "allowed are spread and pack");
    check_wrong("nonsense\n", "");
}

/* The blocks of docs/kubernetes.md that begin with a group of the file. */
static void test_guide(void)
{
    g_autoptr(GRegex) block =
        g_regex_new("^ *```\\n((?: *\\[(?:api|seats )[^`]*))```", G_REGEX_MULTILINE, 0, NULL);
    g_autoptr(GRegex) indent = g_regex_new("^ +", G_REGEX_MULTILINE, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    g_autofree char *page = NULL;
    guint count = 0;

    g_assert_true(g_file_get_contents("docs/kubernetes.md", &page, NULL, NULL));
    for (g_regex_match(block, page, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL), count++) {
        g_autofree char *found = g_match_info_fetch(match, 1);
        g_autofree char *text = g_regex_replace_literal(indent, found, -1, 0, "", 0, NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(KubeConf) conf = read_text(text, &error);

        g_assert_no_error(error);
        g_assert_true(conf->url || conf->seats->len == 1);
    }
    g_assert_cmpuint(count, ==, 2);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/conf/defaults", test_defaults);
    g_test_add_func("/conf/all", test_all);
    g_test_add_func("/conf/wrong", test_wrong);
    g_test_add_func("/conf/guide", test_guide);
    return g_test_run();
}
