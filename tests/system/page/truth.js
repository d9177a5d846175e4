/* SPDX-License-Identifier: MIT */
/* What L1 has, from sources other than vgpud. */
"use strict";

const MIB = 1024 ** 2;

/** As the page writes sizes. */
function words(bytes) {
    return bytes < 1024 * MIB ? `${Math.round(bytes / MIB)}\u00a0MiB` : `${(bytes / 1024 / MIB).toFixed(1)}\u00a0GiB`;
}

/** The shared GPU: its address, the types that it has, and in bytes how much its vGPUs have taken and how much is free. */
async function gpuOf(host) {
    const address = (await host.run("lspci -Dn -d 1af4:1050")).split(" ")[0];
    const types = `/sys/bus/pci/devices/${address}/mdev_supported_types`;
    const [driver, free, ...sizes] = (await host.run(`cd ${types} && ls -d *-full | sed s/-full// && ` +
        "cat *-sixteenth/available_instances /sys/bus/mdev/devices/*/vgpu/vram_bytes")).split("\n");
    const shared = await host.run("sed -n 's/^vram=\\([0-9]*\\)M$/\\1/p' /etc/vgpu/gpus.conf");

    return {
        address, type: size => `${driver}-${size}`, taken: sizes.reduce((sum, size) => sum + Number(size), 0),
        free: Number(free) * Number(shared) * MIB / 16,
    };
}

/** The driver's vGPUs by UUID: the memory, weight and tenant of each. */
async function vgpusOf(host) {
    const text = await host.run("cd /sys/bus/mdev/devices && for u in *-*; do " +
        "echo $u $(cat $u/vgpu/vram_bytes $u/vgpu/weight) \"$(cat $u/vgpu/tenant)\"; done");

    return new Map(text.split("\n").map(line => line.split(" ")).map(([uuid, vram, weight, tenant]) =>
        [uuid, { vram: Number(vram), weight: Number(weight), tenant }]));
}

/** What systemd says of a vGPU's engine. */
function engineOf(host, uuid) {
    return host.run(`systemctl is-active vgpu-engine@${uuid} || true`);
}

/** What the GPU's arbiter, which divides its time, says of a slice; undefined: it has none. */
async function arbiterOf(host, gpu, id) {
    const socket = `/run/vgpu/governor/${gpu}/status.sock`.replaceAll(":", "\\:");
    const text = await host.run(`socat -t 5 - 'UNIX-CONNECT:${socket}' </dev/null`);

    return JSON.parse(text).slices.find(slice => slice.id === id);
}

/** Asks until `good` says yes of what `ask` gives, and returns that. */
async function soon(ask, good, limit = 180000) {
    const end = Date.now() + limit;

    for (;;) {
        const seen = await ask();

        if (good(seen))
            return seen;
        if (Date.now() > end)
            throw new Error(`after ${limit / 1000} s it is still ${JSON.stringify(seen)}`);
        await new Promise(resolve => setTimeout(resolve, 500));
    }
}

module.exports = { MIB, words, gpuOf, vgpusOf, engineOf, arbiterOf, soon };
