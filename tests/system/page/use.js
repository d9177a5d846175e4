/* SPDX-License-Identifier: MIT */
/* The use of programs that compute in slices of their own, beside what the GPU's arbiter counts. */
"use strict";

const assert = require("node:assert");

const { arbiterOf, gpuOf, soon } = require("./truth.js");

/** Two programs: the arbiter does not measure the work of one that is alone. */
const UNITS = { lab: "page-lab", research: "page-research" };
const LOOKS = 5;

/** The heights of a plot's line above its base, 0 to 1, one for each look. */
function heights(plot) {
    return plot.evaluate(svg => [...svg.querySelectorAll("path")].map(path =>
        [...path.getAttribute("d").matchAll(/[ML][\d.]+ ([\d.]+)/g)].map(([, y]) => 1 - y / svg.viewBox.baseVal.height)));
}

/** A program that computes in a slice of a tenant: its process and its slice. */
async function startProgram(host, tenant) {
    const unit = UNITS[tenant];
    const slices = async () => (await host.run("ls /run/vgpu/slices")).split("\n");
    const before = await slices();

    await host.run(`systemd-run --unit ${unit} vgpuctl run --vram 32M --tenant ${tenant} -- ` +
        "vk-compute --device-name Venus --forever");
    const [id] = await soon(async () => (await slices()).filter(uuid => !before.includes(uuid)), list => list.length === 1);

    return { unit, id, tenant };
}

async function use({ host, browser, ui, point, see, gone }) {
    const gpu = await gpuOf(host);
    const row = ({ id }) => ui.locator(`[data-row='${id}']`);
    const programs = [];

    await point("programs that compute in slices of their own are on the page, with their processes", async () => {
        await ui.getByRole("tab", { name: "Use" }).click();
        for (const tenant of Object.keys(UNITS))
            programs.push(await startProgram(host, tenant));
        for (const program of programs) {
            const pid = await host.run(`systemctl show -P MainPID ${program.unit}`);

            await see(row(program).getByText(`vk-compute (process ${pid})`));
            await see(row(program).getByText(program.tenant));
        }
    });
    await point("the plot of GPU time rises as the arbiter counts it", async () => {
        const plot = ui.getByRole("img", { name: /^GPU time:/ });

        await soon(() => heights(plot), lines => lines.filter(line => line.filter(y => y > 0.01).length >= LOOKS).length === 2);
        for (const program of programs) {
            await soon(() => row(program).textContent(), text => /[1-9]\d?\u00a0%/.test(text));
            assert.ok((await arbiterOf(host, gpu.address, program.id)).gpu_ns > 0, "the arbiter knows of no use");
        }
        await browser.shot("host-use");
    });
    await point("when the programs have ended, their slices are gone from the page", async () => {
        await host.run(`systemctl stop ${Object.values(UNITS).join(" ")}`);
        for (const program of programs) {
            await gone(row(program));
            assert.strictEqual(await arbiterOf(host, gpu.address, program.id), undefined);
        }
    });
}

module.exports = { use };
