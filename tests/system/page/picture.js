/* SPDX-License-Identifier: MIT */
/* Administrative access by polkit, and the picture of a GPU that two VMs share, beside what sysfs and libvirt have. */
"use strict";

const assert = require("node:assert");

const { gpuOf, vgpusOf, words } = require("./truth.js");

/** The part of the bar that each slice takes, in its order. */
function widths(bar) {
    return bar.evaluate(whole => [...whole.querySelectorAll(".vgpu-bar-slice")].map(part =>
        part.getBoundingClientRect().width / whole.clientWidth));
}

async function picture({ host, browser, page, ui, point, see, gone }) {
    const gpu = await gpuOf(host);
    const vgpus = await vgpusOf(host);
    const card = ui.locator(`[data-gpu='${gpu.address}']`);

    await point("an administrator who has logged in has limited access, and sees what is taken, but not by whom", async () => {
        await host.logIn(page, "ada", "ada");
        await see(ui.getByText("Limited access"));
        await see(card.getByText(`others ${words(gpu.taken)}`));
        await browser.shot("host-limited");
    });
    await point("polkit asks for the password in Cockpit, and a wrong one gives nothing", async () => {
        await host.askForMore(page, "wrong", () => browser.shot("host-polkit"));
        await see(page.getByRole("heading", { name: "Problem becoming administrator" }));
        await browser.shot("host-polkit-wrong");
        await page.getByRole("dialog").getByRole("button", { name: "Close" }).first().click();
        await see(ui.getByText("Limited access"));
    });
    await point("the right one does, and the page follows by itself", async () => {
        await host.askForMore(page, "ada");
        await see(page.getByRole("button", { name: "Administrative access" }));
        await gone(ui.getByText("Limited access"));
    });
    await point("the picture has each tenant's vGPUs as sysfs has them", async () => {
        const tenants = [...vgpus].sort(([, a], [, b]) => a.tenant.localeCompare(b.tenant));
        const parts = tenants.map(([, { tenant, vram }]) => `${tenant} ${words(vram)}`);

        await see(card.getByRole("img", {
            name: `Memory of ${gpu.address}: ${[...parts, `free ${words(gpu.free)}`].join(", ")}`, exact: true,
        }));
        const seen = await widths(card.locator(".vgpu-bar"));

        assert.strictEqual(seen.length, tenants.length);
        tenants.forEach(([, { vram }], i) => {
            const part = vram / (gpu.taken + gpu.free);

            assert.ok(Math.abs(seen[i] - part) < 0.01, `part ${i} is ${seen[i]} of the bar, and ${part} of the memory`);
        });
        await see(card.getByRole("button", { name: `${vgpus.size} slices` }));
        await browser.shot("host-gpus");
    });
    await point("the table says which VM has which, as libvirt does", async () => {
        await card.getByRole("button", { name: `${vgpus.size} slices` }).click();
        for (const vm of ["red", "blue"]) {
            const uuid = await host.run(`virsh dumpxml ${vm} | sed -n "s/.*address uuid='\\([^']*\\)'.*/\\1/p"`);
            const row = ui.locator(`[data-row='${uuid}']`, { hasText: words(vgpus.get(uuid).vram) });

            await see(row.getByText(`Used by VM ${vm}`));
        }
        await browser.shot("host-slices");
    });
}

module.exports = { picture };
