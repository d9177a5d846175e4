/* SPDX-License-Identifier: MIT */
/* Plays a GPU's arbiter, of which vgpud asks what slices use (vgpu-arbiter(8), "Status"). */
"use strict";

const fs = require("node:fs");
const net = require("node:net");
const path = require("node:path");

/**
 * Serves what `read` says of the GPU's slices each time that vgpud asks.
 * @param tree - what stands for /
 * @param read - returns a list of {id, members, vram_used, spill_used, gpu_ns, waited_ns, throttled_ns}
 */
function startArbiter(tree, gpu, read) {
    const dir = path.join(tree, "run/vgpu/governor", gpu);
    const server = net.createServer(socket => {
        /* vgpud does not wait for long. */
        socket.on("error", () => {});
        socket.end(JSON.stringify({ slices: read() }));
    });

    fs.mkdirSync(dir, { recursive: true });
    server.listen(path.join(dir, "status.sock"));
    return server;
}

module.exports = { startArbiter };
