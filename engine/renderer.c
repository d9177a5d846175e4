// SPDX-License-Identifier: MIT
#include "renderer.h"

#include "exit_code.h"
#include "guest_log.h"

#include <string.h>
#include <virglrenderer.h>

static void *renderer_cookie;

static struct virgl_renderer_callbacks callbacks = {.version = 3};

/* A guest can make virglrenderer complain without limit. */
static void on_log(enum virgl_log_level_flags level, const char *message,
                   void *user_data G_GNUC_UNUSED)
{
    if (level >= VIRGL_LOG_LEVEL_WARNING && guest_log_has_room())
        g_message("virglrenderer: %.*s", (int)strcspn(message, "\n"), message);
}

bool renderer_start(renderer_fence on_fence, void *cookie, GError **error)
{
    const int flags = VIRGL_RENDERER_THREAD_SYNC | VIRGL_RENDERER_ASYNC_FENCE_CB |
                      VIRGL_RENDERER_USE_EXTERNAL_BLOB | VIRGL_RENDERER_VENUS |
                      VIRGL_RENDERER_RENDER_SERVER | VIRGL_RENDERER_NO_VIRGL;
    int ret;

    virgl_set_log_callback(on_log, NULL, NULL);
    callbacks.write_context_fence = on_fence;
    renderer_cookie = cookie;
    ret = virgl_renderer_init(cookie, flags, &callbacks);
    if (ret != 0)
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_RENDERER,
                    "virglrenderer does not start (%d); is virgl-server installed?", ret);
    return ret == 0;
}

void renderer_stop(void)
{
    virgl_renderer_cleanup(renderer_cookie);
}
