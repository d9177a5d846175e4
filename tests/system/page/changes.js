/* SPDX-License-Identifier: MIT */
/* A vGPU is made, changed and removed, and one that is too large is refused: by sysfs, systemd and vgpuctl's own words. */
"use strict";

const assert = require("node:assert");

const { engineOf, gpuOf, MIB, soon, vgpusOf, words } = require("./truth.js");

async function changes({ host, browser, ui, point, see, gone, choose }) {
    const dialog = ui.getByRole("dialog");
    const field = label => dialog.getByLabel(label, { exact: true });
    const submit = name => dialog.getByRole("button", { name, exact: true }).click();
    const gpu = await gpuOf(host);
    const before = await vgpusOf(host);
    let made = "";

    await point("a vGPU that is made on the page is in sysfs, and its engine runs", async () => {
        await ui.getByRole("tab", { name: "Slices" }).click();
        await ui.getByRole("button", { name: "Make a slice" }).click();
        await field("Type").selectOption(gpu.type("eighth"));
        await field("GPU").selectOption(gpu.address);
        await field("Tenant").selectOption("lab");
        await submit("Make");
        await gone(dialog);
        const now = await vgpusOf(host);

        [made] = [...now.keys()].filter(uuid => !before.has(uuid));
        assert.strictEqual(now.size, before.size + 1);
        assert.strictEqual(now.get(made).vram, 64 * MIB);
        assert.strictEqual(now.get(made).tenant, "lab");
        await soon(() => engineOf(host, made), state => state === "active");
        await see(ui.locator(`[data-row='${made}']`).getByText("Not used"));
    });
    await point("its share is changed while it is there", async () => {
        await choose(made.slice(0, 8), "Change…");
        await field("Weight").fill("77");
        await submit("Change");
        await gone(dialog);
        await see(ui.locator(`[data-row='${made}']`).getByText("weight 77"));
        assert.strictEqual((await vgpusOf(host)).get(made).weight, 77);
    });
    await point("more memory than there is is refused with vgpud's sentence, and nothing is made", async () => {
        const said = await host.run(`vgpuctl vgpu create ${gpu.type("half")} --gpu ${gpu.address} 2>&1 || true`);
        const sentence = said.split("\n")[0].replace(/^vgpuctl: /, "");

        assert.match(sentence, /free/);
        await ui.getByRole("button", { name: "Make a slice" }).click();
        await field("Type").selectOption(gpu.type("half"));
        await field("GPU").selectOption(gpu.address);
        await submit("Make");
        await see(dialog.getByRole("alert"));
        const shown = await dialog.getByRole("alert").textContent();

        assert.ok(shown.includes(sentence), `the page says '${shown}', and vgpuctl '${said}'`);
        await browser.shot("host-refused");
        await submit("Cancel");
        await gone(dialog);
        assert.strictEqual((await vgpusOf(host)).size, before.size + 1);
    });
    await point("it is in the picture", async () => {
        await ui.getByRole("tab", { name: "GPUs" }).click();
        await see(ui.getByRole("img", { name: `lab ${words(64 * MIB)}` }));
        await see(ui.getByRole("img", { name: `free ${words(gpu.free - 64 * MIB)}` }));
        await browser.shot("host-three");
    });
    await point("it is removed, with its engine", async () => {
        await ui.getByRole("tab", { name: "Slices" }).click();
        await choose(made.slice(0, 8), "Remove…");
        await submit("Remove");
        await gone(dialog);
        await gone(ui.locator(`[data-row='${made}']`));
        assert.deepStrictEqual([...(await vgpusOf(host)).keys()], [...before.keys()]);
        await soon(() => engineOf(host, made), state => state !== "active" && state !== "deactivating");
    });
}

module.exports = { changes };
