#!/usr/bin/node
/* SPDX-License-Identifier: MIT */
/* A whole GPU: who uses it, switches of its mode with their steps, waiting and cancelling, draining, health. */
"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");

const { pageTest } = require("./lib/page-test.js");
const { vmCloses, vmOpens } = require("./lib/vm.js");

const GPU = "0000:02:00.0";

pageTest(async ({ host, browser, page, point, see, gone, choose }) => {
    const card = page.locator(`[data-gpu='${GPU}']`);
    const dialog = page.getByRole("dialog");
    const submit = name => dialog.getByRole("button", { name, exact: true }).click();
    let uuid = "";

    async function driverOf(gpu) {
        return path.basename(fs.readlinkSync(path.join(host.tree, "sys/bus/pci/devices", gpu, "driver")));
    }

    await point("what a switch would do is said first, and not done", async () => {
        await page.goto(host.url());
        await see(card);
        await choose(GPU, "Switch mode…");
        await dialog.getByRole("button", { name: "Show what would be done" }).click();
        await see(dialog.getByText("This would be done:"));
        await see(dialog.getByText(`GPU ${GPU} is unregistered from the vGPU driver`));
        assert.strictEqual(await driverOf(GPU), "amdgpu");
    });
    await point("a GPU is passed through, and its steps are shown", async () => {
        await submit("Switch");
        await gone(dialog);
        await see(card.getByText("The GPU is passed through now."));
        await see(card.getByText(`GPU ${GPU} is unregistered from the vGPU driver`));
        await see(card.getByText("Passed through", { exact: true }));
        assert.strictEqual(await driverOf(GPU), "vfio-pci");
    });
    await point("it comes back", async () => {
        await choose(GPU, "Switch mode…");
        assert.ok(await dialog.getByLabel("Shared").isChecked());
        await submit("Switch");
        await see(card.getByText("The GPU is shared now."));
        await card.getByRole("button", { name: /Close/ }).click();
        await gone(card.getByText("The GPU is shared now."));
        assert.strictEqual(await driverOf(GPU), "amdgpu");
    });
    await point("a VM that has a vGPU of it is in the way, and vgpud's sentence names it", async () => {
        host.create(`{'Door': <'vm'>, 'Type': <'quarter'>, 'Gpus': <['${GPU}']>, 'Define': <true>}`);
        [, uuid] = /'Uuid': <'([^']*)'>/.exec(host.call("FindSlices", "{'Doors': <['vm']>}"));
        vmOpens(host.tree, uuid, "red-vm");
        await choose(GPU, "Switch mode…");
        await submit("Switch");
        await see(card.getByText(/VM red-vm \(process 4200/));
        assert.strictEqual(await driverOf(GPU), "amdgpu");
    });
    await point("who uses it is listed", async () => {
        await choose(GPU, "Who uses it…");
        await see(dialog.getByText(/VM red-vm/));
        await dialog.getByRole("button", { name: "Close" }).last().click();
        await gone(dialog);
    });
    await point("a switch that waits says for whom, and is cancelled", async () => {
        await choose(GPU, "Switch mode…");
        await dialog.getByLabel("Wait until nobody uses the GPU").check();
        await submit("Switch");
        await see(card.getByText("Switching to passed through"));
        await see(card.getByText(/red-vm/));
        assert.strictEqual(await card.getByText(/red-vm/).count(), 1, "a step is there once");
        await see(card.getByText("Draining", { exact: true }));
        await browser.shot("switch-waits");
        await card.getByRole("button", { name: "Cancel the switch" }).click();
        await gone(card.getByText("Switching to passed through"));
        await see(card.getByText(/cancelled/));
        await gone(card.getByText("Draining", { exact: true }));
    });
    await point("a switch that waits goes on when the VM has closed its vGPU", async () => {
        await choose(GPU, "Switch mode…");
        await dialog.getByLabel("Wait until nobody uses the GPU").check();
        await submit("Switch");
        await see(card.getByText("Switching to passed through"));
        vmCloses(host.tree, uuid);
        await see(card.getByText("The GPU is passed through now."));
        assert.strictEqual(await driverOf(GPU), "vfio-pci");
    });
    await point("draining begins and ends", async () => {
        const other = page.locator("[data-gpu='0000:03:00.0']");

        await choose("0000:03:00.0", "Drain");
        await see(other.getByText("Draining", { exact: true }));
        await choose("0000:03:00.0", "End draining");
        await gone(other.getByText("Draining", { exact: true }));
    });
    await point("a GPU that is not healthy says why, and what to do", async () => {
        const sick = page.locator("[data-gpu='0000:06:00.0']");

        await see(sick.getByText("Not healthy", { exact: true }));
        await see(sick.getByText(/112 degrees Celsius, critical from 100 on/));
        await see(sick.getByText(/the air of the rack/));
    });
    await point("a finding is cleared", async () => {
        const sick = page.locator("[data-gpu='0000:06:00.0']");

        fs.writeFileSync(path.join(host.tree, "sys/bus/pci/devices/0000:06:00.0/hwmon/hwmon3/temp1_input"), "60000\n");
        await sick.getByRole("button", { name: "Clear the finding" }).click();
        await see(sick.getByText("Healthy", { exact: true }));
    });
    await point("all of that is among the events", async () => {
        await page.getByRole("tab", { name: "Events" }).click();
        await see(page.getByRole("row", { name: new RegExp(`GPU ${GPU} is passthrough now`) }));
        await see(page.getByRole("row", { name: /declared healthy/ }));
    });
});
