/* SPDX-License-Identifier: MIT */
/*
 * What a launcher of VMs, such as KubeVirt's, reads of a claim whose slices are vGPUs: "device
 * metadata" of Kubernetes 1.36 and newer (KEP-5304, metadata.resource.k8s.io).
 *
 * Each request of the claim has a file with the attributes of its devices, mdevUUID among them, in
 * the driver's folder below the kubelet's, and a CDI device that mounts it read-only into the
 * container at the place that the protocol names. VFIO's nodes are in vgpud's own CDI device.
 */
#ifndef KUBERNETES_DRA_METADATA_H
#define KUBERNETES_DRA_METADATA_H

#include "fleet/kubernetes/conf.h"
#include "fleet/kubernetes/dra/claim.h"

/*
 * Writes all of it; what is there already stays, or is replaced under a higher generation if a vGPU
 * is another one. @mdevs: for each slice of @claim its directory in sysfs; "": it is no vGPU.
 * @gpus: of AgentGpu, all that the claim may have. Returns the names of CDI devices, for each
 * slice, "" for those that are no vGPUs; to be freed. NULL with G_FILE_ERROR or G_IO_ERROR.
 */
GStrv metadata_write(const KubeConf *conf, const Claim *claim, const GPtrArray *gpus,
                     const char *const *mdevs, GError **error);

/* The same again is no error. @uid: the claim's. */
void metadata_remove(const KubeConf *conf, const char *uid);

#endif
