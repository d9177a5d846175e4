// SPDX-License-Identifier: MIT
#include "renderer.h"

#include "capset.h"
#include "exit_code.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <virglrenderer.h>

#define LOG_BURST    50
#define LOG_INTERVAL (10 * G_TIME_SPAN_SECOND)

static struct {
    const struct renderer_events *events;
    void *cookie;
    uint32_t capsets;
    char *render_node;
    bool trying; /* another attempt is possible, so its complaints are ignored */
} renderer;

static void on_global_fence(void *cookie, uint32_t fence)
{
    renderer.events->global_fence(cookie, fence);
}

static void on_ring_fence(void *cookie, uint32_t ctx_id, uint32_t ring_idx, uint64_t fence_id)
{
    renderer.events->ring_fence(cookie, ctx_id, ring_idx, fence_id);
}

/* virglrenderer closes what it gets, and asks once for each renderer that wants one. */
static int get_drm_fd(void *cookie G_GNUC_UNUSED)
{
    return renderer.render_node ? open(renderer.render_node, O_RDWR | O_CLOEXEC) : -1;
}

static struct virgl_renderer_callbacks callbacks = {
    .version = 3,
    .write_fence = on_global_fence,
    .write_context_fence = on_ring_fence,
    .get_drm_fd = get_drm_fd,
};

/* A guest can make virglrenderer complain without limit; it must not fill the journal. */
static void on_log(enum virgl_log_level_flags level, const char *message,
                   void *user_data G_GNUC_UNUSED)
{
    static GMutex lock;
    static gint64 since;
    static unsigned int count;
    gint64 now = g_get_monotonic_time();
    bool quiet;

    if (level < VIRGL_LOG_LEVEL_WARNING || renderer.trying)
        return;

    g_mutex_lock(&lock);
    if (now - since > LOG_INTERVAL) {
        since = now;
        count = 0;
    }
    quiet = count++ >= LOG_BURST;
    g_mutex_unlock(&lock);

    if (!quiet)
        g_message("virglrenderer: %.*s", (int)strcspn(message, "\n"), message);
}

static int init_flags(uint32_t capsets)
{
    int flags = VIRGL_RENDERER_THREAD_SYNC | VIRGL_RENDERER_ASYNC_FENCE_CB |
                VIRGL_RENDERER_USE_EXTERNAL_BLOB;

    if (capsets & CAPSET_VENUS)
        flags |= VIRGL_RENDERER_VENUS | VIRGL_RENDERER_RENDER_SERVER;
    if (capsets & CAPSET_DRM)
        flags |= VIRGL_RENDERER_DRM;
    if (capsets & CAPSET_VIRGL)
        flags |= VIRGL_RENDERER_USE_EGL | VIRGL_RENDERER_USE_SURFACELESS;
    else
        flags |= VIRGL_RENDERER_NO_VIRGL;
    return flags;
}

static int try_init(uint32_t capsets)
{
    int ret = virgl_renderer_init(renderer.cookie, init_flags(capsets), &callbacks);

    if (ret != 0)
        return ret;
    /* Without a thread for its fences, OpenGL would never complete one of them. */
    if ((capsets & CAPSET_VIRGL) && virgl_renderer_get_poll_fd() < 0) {
        virgl_renderer_cleanup(renderer.cookie);
        return -ENOSYS;
    }
    return 0;
}

/*
 * virglrenderer starts with everything requested or not at all, so what may be missing is left out
 * step by step. Native contexts go first: Debian 13's library has none.
 */
static int init_best(uint32_t wanted, uint32_t *got)
{
    static const uint32_t leave_out[] = {0, CAPSET_DRM, CAPSET_VIRGL, CAPSET_DRM | CAPSET_VIRGL};
    uint32_t sets[G_N_ELEMENTS(leave_out)];
    size_t count = 0;
    int ret = -ENOSYS;

    for (size_t i = 0; i < G_N_ELEMENTS(leave_out); i++) {
        if ((wanted & leave_out[i]) == leave_out[i] && (wanted & ~leave_out[i]))
            sets[count++] = wanted & ~leave_out[i];
    }
    for (size_t i = 0; i < count && ret != 0; i++) {
        renderer.trying = i + 1 < count;
        ret = try_init(sets[i]);
        *got = sets[i];
    }
    renderer.trying = false;
    return ret;
}

uint32_t renderer_start(const struct renderer_events *events, void *cookie, uint32_t capsets,
                        const char *render_node, GError **error)
{
    uint32_t got = 0;
    int ret;

    virgl_set_log_callback(on_log, NULL, NULL);
    g_free(renderer.render_node);
    renderer.render_node = g_strdup(render_node);
    renderer.events = events;
    renderer.cookie = cookie;

    ret = init_best(capsets, &got);
    if (ret != 0) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_RENDERER,
                    "virglrenderer does not start (%d); is virgl-server installed?", ret);
        return 0;
    }
    renderer.capsets = got;
    return got;
}

/*
 * With OpenGL, virgl_renderer_reset() of 1.1.0 ends the thread that waits for fences and does not
 * start another one. So everything is restarted.
 */
bool renderer_reset(void)
{
    if (!(renderer.capsets & CAPSET_VIRGL)) {
        virgl_renderer_reset();
        return true;
    }
    virgl_renderer_cleanup(renderer.cookie);
    return virgl_renderer_init(renderer.cookie, init_flags(renderer.capsets), &callbacks) == 0;
}

void renderer_stop(void)
{
    virgl_renderer_cleanup(renderer.cookie);
    g_clear_pointer(&renderer.render_node, g_free);
}
