/* SPDX-License-Identifier: MIT */
/* A VM that has a vGPU open, as vgpud finds it below / (tests/unit/host-agent/fake_kernel.h). */
"use strict";

const fs = require("node:fs");
const path = require("node:path");

const PID = "4200";
const FD = "7";

/** The directory of a vGPU's device in the tree. */
function vgpuDir(tree, uuid) {
    return fs.realpathSync(path.join(tree, "sys/bus/mdev/devices", uuid));
}

/** libvirt's VM `name` opens the vGPU. */
function vmOpens(tree, uuid, name) {
    const device = vgpuDir(tree, uuid);
    const proc = path.join(tree, "proc", PID);

    fs.writeFileSync(path.join(device, "vgpu/state"), "device=running engine=ready\n");
    fs.rmSync(path.join(device, "iommu_group"), { force: true });
    fs.symlinkSync("../../../../../kernel/iommu_groups/77", path.join(device, "iommu_group"));
    fs.mkdirSync(path.join(proc, "fd"), { recursive: true });
    fs.writeFileSync(path.join(proc, "cmdline"), `qemu-system-x86\0-name\0guest=${name},debug-threads=on\0`);
    fs.writeFileSync(path.join(proc, "comm"), "qemu-system-x86");
    fs.writeFileSync(path.join(proc, "cgroup"), "0::/\n");
    fs.symlinkSync("/dev/vfio/77", path.join(proc, "fd", FD));
}

/** It closes it. */
function vmCloses(tree, uuid) {
    fs.writeFileSync(path.join(vgpuDir(tree, uuid), "vgpu/state"), "device=closed engine=ready\n");
    fs.unlinkSync(path.join(tree, "proc", PID, "fd", FD));
}

module.exports = { vmOpens, vmCloses };
