// SPDX-License-Identifier: MIT
/*
 * The order matters: the GPU is looked up while all of sysfs is visible, then the sandbox closes,
 * and only inside it is a Vulkan driver loaded for the first time.
 */
#include "capset.h"
#include "cuda_alone.h"
#include "describe.h"
#include "device.h"
#include "engine.h"
#include "exit_code.h"
#include "loop.h"
#include "options.h"
#include "renderer.h"
#include "sandbox.h"
#include "shader_cache.h"
#include "state.h"
#include "vulkan_driver.h"

#include <locale.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

static bool device_error(GError **error, const char *what, int ret)
{
    g_set_error(error, ENGINE_ERROR, EXIT_CODE_DEVICE, "%s: %s", what, g_strerror(-ret));
    return false;
}

static bool attach_device(struct engine *engine, GError **error)
{
    struct vgpu_transport *transport = engine->transport;
    int ret = transport->ops->info(transport, &engine->info);

    if (ret < 0)
        return device_error(error, "this is not a vGPU, or not one of this version", ret);
    if (engine->info.api_version < 1 || engine->info.api_version > VGPU_API_VERSION) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_DEVICE,
                    "mdev_vgpu speaks version %u, this engine versions 1 to %u; load the module "
                    "that came with it",
                    engine->info.api_version, VGPU_API_VERSION);
        return false;
    }
    if (engine->info.api_version < VGPU_API_VERSION)
        g_message("mdev_vgpu is of before the upgrade: guests are served, but slower, until the "
                  "new module is loaded");
    engine->info.gpu[sizeof(engine->info.gpu) - 1] = '\0';

    ret = transport->ops->attach(transport);
    if (ret < 0)
        return device_error(error, "cannot attach; is another engine running?", ret);
    /* The epoch may have changed before we were attached, without an event for us. */
    ret = transport->ops->info(transport, &engine->info);
    if (ret < 0)
        return device_error(error, "the driver does not answer", ret);
    engine->info.gpu[sizeof(engine->info.gpu) - 1] = '\0';
    engine->epoch = engine->info.epoch;
    return true;
}

/* No path: the vGPU's type has no CUDA, or the worker is not installed. */
static struct cuda_worker find_cuda_worker(const struct engine *engine,
                                           const struct options *options)
{
    const char *path = options->cuda_worker ? options->cuda_worker : VGPU_CUDA_WORKER;
    struct cuda_worker worker = {.is_confined = !options->no_landlock, .is_of_vm = true};

    if (!engine->info.cuda && !options->cuda_worker)
        return worker;
    if (g_file_test(path, G_FILE_TEST_IS_EXECUTABLE))
        worker.path = path;
    else
        g_message("no CUDA: %s cannot be run; is vgpu-governor installed?", path);
    return worker;
}

/* After the sandbox has closed, and before the renderer starts, which changes the environment. */
static void offer_cuda(struct engine *engine, const struct options *options, const struct gpu *gpu,
                       const struct cuda_worker *worker)
{
    if (!worker->path)
        return;
    if (options->cuda_worker || g_strv_contains((const char *const *)gpu->nodes, "/dev/nvidiactl"))
        cuda_host_offer(&engine->cuda, worker);
    else
        g_message("GPU %s: no CUDA, its driver is not NVIDIA's", gpu->name);
}

static bool start_vulkan(struct engine *engine, const struct options *options,
                         const struct cuda_worker *worker, GError **error)
{
    struct vulkan_driver driver;
    bool ok = vulkan_driver_enter(&driver, engine->info.gpu, options, error);

    if (ok) {
        offer_cuda(engine, options, driver.gpu, worker);
        g_message("GPU %s: using Vulkan driver %s", driver.gpu->name, driver.manifest);
        g_setenv("VK_DRIVER_FILES", driver.manifest, TRUE);
        engine->opaque = !driver.report.dma_buf;
        ok = engine_start_renderer(engine, error);
    }
    vulkan_driver_clear(&driver);
    return ok;
}

static bool start_renderer(struct engine *engine, const struct options *options, GError **error)
{
    struct cuda_worker worker = find_cuda_worker(engine, options);
    g_autofree char *no_vulkan = NULL;
    struct gpu *gpu;

    if (worker.path) {
        sandbox_allow_program(worker.path);
        no_vulkan = cuda_alone_why(engine->info.gpu, options);
    }
    if (!no_vulkan)
        return start_vulkan(engine, options, &worker, error);

    gpu = cuda_alone_enter(engine->info.gpu, options, error);
    if (!gpu)
        return false;
    g_message("vGPU without Vulkan, with CUDA alone: %s", no_vulkan);
    offer_cuda(engine, options, gpu, &worker);
    engine_start_without_renderer(engine);
    gpu_free(gpu);
    return true;
}

static bool become_ready(struct engine *engine, GError **error)
{
    struct vgpu_transport *transport = engine->transport;
    /* An older module refuses what it does not know. */
    bool can_save = engine->info.features & VGPU_FEATURE_STATE;
    uint64_t renderer = can_save ? capset_hash(engine, STATE_VERSION) : 0;
    int ret = transport->ops->ready(transport, engine->num_capsets, renderer);
    const char *cuda = engine->cuda.program.path ? ", with CUDA" : "";

    if (ret < 0)
        return device_error(error, "the driver does not accept this engine", ret);
    if (!engine->has_renderer)
        cuda = ", with CUDA alone";
    sd_notifyf(0, "READY=1\nSTATUS=vGPU of type %.*s on %s%s", VGPU_TYPE_NAME_LEN,
               engine->info.type, engine->info.gpu, cuda);
    return true;
}

static bool serve_vm(struct engine *engine, const struct options *options, GError **error)
{
    bool ok;

    if (!attach_device(engine, error))
        return false;

    ok = start_renderer(engine, options, error) && become_ready(engine, error);
    if (ok) {
        /* In any case: a display can be given to the vGPU later. */
        painter_start(&engine->scanout.painter);
        ok = loop_run(engine, error);
        /* Before what it reads is unmapped. */
        painter_stop(&engine->scanout.painter);
    }
    sd_notify(0, "STOPPING=1");
    /* A waiting VMM gets the reason now, instead of running into its time limit. */
    if (!ok)
        engine->transport->ops->fail(engine->transport, (*error)->message);
    return ok;
}

static int exit_code_of(const GError *error)
{
    if (error->domain == ENGINE_ERROR)
        return error->code;
    if (error->domain == G_OPTION_ERROR)
        return EXIT_CODE_USAGE;
    return error->domain == G_FILE_ERROR ? EXIT_CODE_DEVICE : EXIT_CODE_INTERNAL;
}

static int run_engine(const struct options *options, GError **error)
{
    struct vgpu_transport *transport = NULL;
    struct engine engine;
    bool ok;

    if (options->device)
        transport = device_open(options->device, error);
    else if (options->fd >= 0)
        transport = device_adopt(options->fd, error);
    else
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_USAGE, "no device: give --device or --fd");
    if (!transport)
        return exit_code_of(*error);

    sandbox_clean_environment((const char *const *)options->environment);
    shader_cache_use(options->shader_cache);
    engine_init(&engine, transport);
    ok = loop_setup(error) && serve_vm(&engine, options, error);
    /* At once, and without another word to a worker that may hang: its VM has ended. */
    if (engine.closed)
        _exit(EXIT_CODE_CLOSED);
    if (engine.has_renderer)
        renderer_stop();
    engine_clear(&engine);
    device_close(transport);
    return ok ? EXIT_CODE_OK : exit_code_of(*error);
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    struct options options;
    int status = EXIT_CODE_OK;

    setlocale(LC_ALL, "");
    if (!options_parse(&options, argc, argv, &error))
        status = exit_code_of(error);
    else if (options.show_version)
        printf("vgpu-engine %s\n", VGPU_VERSION);
    else if (options.describe)
        status = describe_gpu(&options, &error) ? EXIT_CODE_OK : exit_code_of(error);
    else
        status = run_engine(&options, &error);

    if (error)
        g_printerr("vgpu-engine: %s\n", error->message);
    options_clear(&options);
    return status;
}
