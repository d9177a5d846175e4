/* SPDX-License-Identifier: MIT */
/* A whole GPU is taken from its VMs and given back, with its steps on the page: by its driver, and by libvirt. */
"use strict";

const assert = require("node:assert");

const { gpuOf, soon, vgpusOf } = require("./truth.js");

async function modes({ host, browser, ui, point, see, gone, choose }) {
    const gpu = await gpuOf(host);
    const before = await vgpusOf(host);
    const card = ui.locator(`[data-gpu='${gpu.address}']`);
    const dialog = ui.getByRole("dialog");
    const shared = () => host.run(`test -e /sys/bus/pci/devices/${gpu.address}/mdev_supported_types && echo shared || echo no`);

    await point("a switch that waits for its VMs names them, and takes nothing", async () => {
        await ui.getByRole("tab", { name: "GPUs" }).click();
        await choose(gpu.address, "Switch mode…");
        await dialog.getByLabel("Host only").check();
        await dialog.getByLabel("Wait until nobody uses the GPU").check();
        await dialog.getByRole("button", { name: "Switch", exact: true }).click();
        await gone(dialog);
        await see(card.getByText("Switching to host only"));
        for (const vm of ["red", "blue"])
            await see(card.getByText(new RegExp(`VM ${vm} `)));
        await see(card.getByText("Draining", { exact: true }));
        await browser.shot("host-switch-waits");
        assert.strictEqual(await shared(), "shared");
        assert.strictEqual((await vgpusOf(host)).size, before.size);
    });
    await point("it goes on when the VMs have given back their vGPUs", async () => {
        for (const vm of ["red", "blue"])
            await host.run(`vgpuctl detach ${vm}`);
        await see(card.getByText("The GPU is host only now."));
        await see(card.getByText("Host only", { exact: true }));
        assert.strictEqual(await shared(), "no");
        await browser.shot("host-switched");
    });
    await point("shared again, its vGPUs come back", async () => {
        await choose(gpu.address, "Switch mode…");
        await dialog.getByLabel("Shared").check();
        await dialog.getByRole("button", { name: "Switch", exact: true }).click();
        await gone(dialog);
        await see(card.getByText("The GPU is shared now."));
        await soon(async () => [...(await vgpusOf(host)).keys()], uuids => before.size === uuids.length);
        await see(card.getByRole("button", { name: `${before.size} slices` }));
    });
    await point("all of it is among the events", async () => {
        await ui.getByRole("tab", { name: "Events" }).click();
        await see(ui.getByRole("row", { name: new RegExp(`GPU ${gpu.address} is host now`) }));
        await see(ui.getByRole("row", { name: new RegExp(`GPU ${gpu.address} is shared now`) }));
        await browser.shot("host-events");
    });
}

module.exports = { modes };
