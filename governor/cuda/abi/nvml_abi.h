/* SPDX-License-Identifier: MIT */
/* The parts of libnvidia-ml.so.1's binary interface that the door uses; see cuda_abi.h. */
#ifndef GOVERNOR_NVML_ABI_H
#define GOVERNOR_NVML_ABI_H

typedef struct nvmlDevice_st *nvmlDevice_t;

typedef enum nvmlReturn_enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
} nvmlReturn_t;

#define NVML_VALUE_NOT_AVAILABLE (~0ull)

typedef struct nvmlMemory_st {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_t;

typedef struct nvmlMemory_v2_st {
    unsigned int version;
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_v2_t;

/* A structure's version: its size, and its number. */
#define NVML_MEMORY_V2                (sizeof(nvmlMemory_v2_t) | 2u << 24)
#define NVML_PROCESS_DETAIL_LIST_V1   (sizeof(nvmlProcessDetailList_v1_t) | 1u << 24)
#define NVML_PROCESSES_UTILIZATION_V1 (sizeof(nvmlProcessesUtilizationInfo_v1_t) | 1u << 24)
#define NVML_MARGIN_TEMPERATURE_V1    (sizeof(nvmlMarginTemperature_t) | 1u << 24)

#define NVML_TEMPERATURE_GPU                0
#define NVML_TEMPERATURE_THRESHOLD_SLOWDOWN 1

#define NVML_MEMORY_ERROR_TYPE_CORRECTED   0
#define NVML_MEMORY_ERROR_TYPE_UNCORRECTED 1
#define NVML_VOLATILE_ECC                  0

#define NVML_GPU_UTILIZATION_SAMPLES 1

/* @timeStamp: us since 1970. @sampleValue: of the type that nvmlDeviceGetSamples() tells. */
typedef struct nvmlSample_st {
    unsigned long long timeStamp;
    union {
        unsigned int uiVal;
        unsigned long long ullVal;
        double dVal;
    } sampleValue;
} nvmlSample_t;

#define NVML_VALUE_TYPE_UNSIGNED_INT 1

/* Degrees Celsius up to the temperature at which the GPU slows itself down. */
typedef struct nvmlMarginTemperature_st {
    unsigned int version;
    int marginTemperature;
} nvmlMarginTemperature_t;

typedef struct nvmlProcessInfo_v1_st {
    unsigned int pid;
    unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct nvmlProcessInfo_v2_st {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
} nvmlProcessInfo_v2_t;

typedef struct nvmlProcessDetail_v1_st {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;

typedef struct nvmlProcessDetailList_v1_st {
    unsigned int version;
    unsigned int mode;
    unsigned int numProcArrayEntries;
    nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_v1_t;

/* Percent of the time since @timeStamp. */
typedef struct nvmlProcessUtilizationSample_st {
    unsigned int pid;
    unsigned long long timeStamp;
    unsigned int smUtil;
    unsigned int memUtil;
    unsigned int encUtil;
    unsigned int decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct nvmlProcessUtilizationInfo_v1_st {
    unsigned long long timeStamp;
    unsigned int pid;
    unsigned int smUtil;
    unsigned int memUtil;
    unsigned int encUtil;
    unsigned int decUtil;
    unsigned int jpgUtil;
    unsigned int ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;

typedef struct nvmlProcessesUtilizationInfo_v1_st {
    unsigned int version;
    unsigned int processSamplesCount;
    unsigned long long lastSeenTimeStamp;
    nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_v1_t;

/* Of a program that encodes video. */
typedef struct nvmlEncoderSessionInfo_st {
    unsigned int sessionId;
    unsigned int pid;
    unsigned int vgpuInstance;
    int codecType;
    unsigned int hResolution;
    unsigned int vResolution;
    unsigned int averageFps;
    unsigned int averageLatency;
} nvmlEncoderSessionInfo_t;

/* Of a program that captures a framebuffer. */
typedef struct nvmlFBCSessionInfo_st {
    unsigned int sessionId;
    unsigned int pid;
    unsigned int vgpuInstance;
    unsigned int displayOrdinal;
    int sessionType;
    unsigned int sessionFlags;
    unsigned int hMaxResolution;
    unsigned int vMaxResolution;
    unsigned int hResolution;
    unsigned int vResolution;
    unsigned int averageFPS;
    unsigned int averageLatency;
} nvmlFBCSessionInfo_t;

/* Passed on only. */
typedef struct nvmlAccountingStats_st nvmlAccountingStats_t;

/* @pid: the caller's; the rest is the driver's. */
typedef struct nvmlAccountingStats_v2_st {
    unsigned int pid;
    unsigned int isRunning;
    unsigned int gpuUtilization;
    unsigned int memoryUtilization;
    unsigned long long maxMemoryUsage;
    unsigned int sampleCount;
    unsigned long long sumGpuUtil;
    unsigned long long sumFbUtil;
    unsigned long long time;
    unsigned long long startTime;
} nvmlAccountingStats_v2_t;

typedef struct nvmlPciInfo_st {
    char busIdLegacy[16];
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pciDeviceId;
    unsigned int pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

/* For nvmlDeviceGetMaxClockInfo(). */
#define NVML_CLOCK_SM  1
#define NVML_CLOCK_MEM 2

/* What is at the other end of a link. */
#define NVML_NVLINK_MAX_LINKS          36
#define NVML_NVLINK_DEVICE_TYPE_GPU    0
#define NVML_NVLINK_DEVICE_TYPE_SWITCH 2

/* "Not limited", for nvmlSetMemoryLimits_v1_t.hardLimit. */
#define NVML_DEVICE_MEMORY_LIMIT_MAX (~0ull)

/* Of a cgroup, by its directory's full path (driver 615). */
typedef struct nvmlSetMemoryLimits_v1_st {
    const char *nameSpace;
    unsigned long long softLimit;
    unsigned long long hardLimit;
} nvmlSetMemoryLimits_v1_t;

typedef struct nvmlGetMemoryLimits_v1_st {
    const char *nameSpace;
    unsigned long long softLimit;
    unsigned long long hardLimit;
    unsigned long long currentUsed;
} nvmlGetMemoryLimits_v1_t;

#endif
