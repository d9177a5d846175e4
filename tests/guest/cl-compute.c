/* SPDX-License-Identifier: MIT */
/*
 * Computes with OpenCL and checks every element (job.h). With Mesa's rusticl on zink this is OpenCL
 * on top of Vulkan, and so the way to a vGPU:
 *
 *   RUSTICL_ENABLE=zink GALLIUM_DRIVER=zink LIBGL_ALWAYS_SOFTWARE=1 cl-compute
 */
#define CL_TARGET_OPENCL_VERSION 120

#include "job.h"
#include "constants.h"

#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.cl.h"

#define MAX_PLATFORMS 8
#define MAX_DEVICES   16

struct compute {
    const struct job *job;
    char name[256];
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernels[JOB_NUM_KERNELS];
    cl_mem in;
    cl_mem results[JOB_NUM_KERNELS];
    uint32_t *host[JOB_NUM_KERNELS];
};

static void check_result(const struct job *job, cl_int error, const char *what)
{
    if (error != CL_SUCCESS)
        job_fail(job, "%s: OpenCL error %d", what, error);
}

static size_t buffer_bytes(const struct job *job)
{
    return (size_t)job->size * sizeof(uint32_t);
}

/* Looks through one platform; adds the names of devices that were not wanted to @seen. */
static bool choose_on_platform(struct compute *c, cl_platform_id platform, char *seen, size_t max)
{
    cl_device_id devices[MAX_DEVICES];
    cl_uint count = 0;

    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices, &count) != CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < count && i < MAX_DEVICES; i++) {
        check_result(c->job,
                     clGetDeviceInfo(devices[i], CL_DEVICE_NAME, sizeof(c->name), c->name, NULL),
                     "clGetDeviceInfo");
        if (job_wants_device(c->job, c->name)) {
            c->device = devices[i];
            return true;
        }
        size_t used = strlen(seen);
        snprintf(seen + used, max - used, "%s'%s'", used ? ", " : "", c->name);
    }
    return false;
}

static void choose_device(struct compute *c)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint count = 0;
    char seen[1024] = "";

    /* Without any platform this is CL_PLATFORM_NOT_FOUND_KHR, which the message below covers. */
    if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &count) != CL_SUCCESS)
        count = 0;
    for (cl_uint i = 0; i < count && i < MAX_PLATFORMS; i++) {
        if (choose_on_platform(c, platforms[i], seen, sizeof(seen)))
            return;
    }
    job_fail(c->job, "no OpenCL device has '%s' in its name; there are: %s",
             c->job->device_name ? c->job->device_name : "", *seen ? seen : "none");
}

static void build_kernels(struct compute *c)
{
    const char *source = kernels_cl;
    cl_int error;

    c->program = clCreateProgramWithSource(c->context, 1, &source, NULL, &error);
    check_result(c->job, error, "clCreateProgramWithSource");
    check_result(c->job, clBuildProgram(c->program, 1, &c->device, NULL, NULL, NULL),
                 "clBuildProgram");
    for (int i = 0; i < JOB_NUM_KERNELS; i++) {
        c->kernels[i] = clCreateKernel(c->program, job_kernel_name[i], &error);
        check_result(c->job, error, "clCreateKernel");
    }
}

static void compute_open(struct compute *c, const struct job *job)
{
    size_t size = buffer_bytes(job);
    cl_int error;

    *c = (struct compute){.job = job};
    choose_device(c);
    c->context = clCreateContext(NULL, 1, &c->device, NULL, NULL, &error);
    check_result(job, error, "clCreateContext");
    c->queue = clCreateCommandQueue(c->context, c->device, 0, &error);
    check_result(job, error, "clCreateCommandQueue");
    build_kernels(c);
    c->in = clCreateBuffer(c->context, CL_MEM_READ_ONLY, size, NULL, &error);
    check_result(job, error, "clCreateBuffer");
    for (int i = 0; i < JOB_NUM_KERNELS; i++) {
        c->results[i] = clCreateBuffer(c->context, CL_MEM_WRITE_ONLY, size, NULL, &error);
        check_result(job, error, "clCreateBuffer");
    }
    for (int i = 0; i < JOB_NUM_KERNELS; i++)
        c->host[i] = job_alloc(job);
}

static void compute_close(struct compute *c)
{
    for (int i = 0; i < JOB_NUM_KERNELS; i++)
        free(c->host[i]);
    for (int i = 0; i < JOB_NUM_KERNELS; i++) {
        clReleaseMemObject(c->results[i]);
        clReleaseKernel(c->kernels[i]);
    }
    clReleaseMemObject(c->in);
    clReleaseProgram(c->program);
    clReleaseCommandQueue(c->queue);
    clReleaseContext(c->context);
}

static void enqueue_kernel(struct compute *c, uint64_t round, enum job_kernel which)
{
    const struct job *job = c->job;
    struct job_params params = job_params(job, round);
    cl_kernel kernel = c->kernels[which];
    size_t global = job->size, local = GROUP_SIZE;

    check_result(job, clSetKernelArg(kernel, 0, sizeof(cl_mem), &c->in), "clSetKernelArg");
    check_result(job, clSetKernelArg(kernel, 1, sizeof(cl_mem), &c->results[which]),
                 "clSetKernelArg");
    check_result(job, clSetKernelArg(kernel, 2, sizeof(cl_uint), &params.size), "clSetKernelArg");
    check_result(job, clSetKernelArg(kernel, 3, sizeof(cl_uint), &params.iterations),
                 "clSetKernelArg");
    check_result(job, clSetKernelArg(kernel, 4, sizeof(cl_uint), &params.offset), "clSetKernelArg");
    check_result(job,
                 clEnqueueNDRangeKernel(c->queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL),
                 "clEnqueueNDRangeKernel");
}

static void compute_round(struct compute *c, uint64_t round)
{
    const struct job *job = c->job;
    size_t size = buffer_bytes(job);

    job_fill_input(job, round, c->host[0]);
    check_result(job,
                 clEnqueueWriteBuffer(c->queue, c->in, CL_TRUE, 0, size, c->host[0], 0, NULL, NULL),
                 "clEnqueueWriteBuffer");
    for (int i = 0; i < JOB_NUM_KERNELS; i++)
        enqueue_kernel(c, round, (enum job_kernel)i);
    check_result(job, clFinish(c->queue), "clFinish");
    for (int i = 0; i < JOB_NUM_KERNELS; i++) {
        job_fill_output(job, c->host[i]);
        check_result(job,
                     clEnqueueReadBuffer(c->queue, c->results[i], CL_TRUE, 0, size, c->host[i], 0,
                                         NULL, NULL),
                     "clEnqueueReadBuffer");
    }
    /* All is read before: the GPU's memory may go at any moment, and to verify takes its time. */
    for (int i = 0; i < JOB_NUM_KERNELS; i++)
        job_verify(job, round, (enum job_kernel)i, c->host[i]);
    job_report_round(job, round, c->name);
}

int main(int argc, char **argv)
{
    struct compute c;
    struct job job;

    job_parse(&job, argc, argv);
    job_start_clock(&job);
    compute_open(&c, &job);
    for (uint64_t round = 0; job_continues(&job, round); round++) {
        if (round) {
            job_start_clock(&job);
            if (job.fresh) {
                compute_close(&c);
                compute_open(&c, &job);
            }
        }
        compute_round(&c, round);
    }
    compute_close(&c);
    job_report_end(&job, c.name);
    return 0;
}
