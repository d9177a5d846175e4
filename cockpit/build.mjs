/* SPDX-License-Identifier: MIT */
/* build.mjs OUT: bundles the page from src/ and node_modules/ into the folder OUT. Needs no network. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2];

/** Cockpit serves PatternFly's fonts to all of its pages. */
const cockpitFonts = {
    name: "cockpit-fonts",
    setup({ onResolve }) {
        onResolve({ filter: /\.woff2?$/ }, ({ path }) => ({
            path: `../../static/fonts/${path.match(/RedHat(Text|Display|Mono)/)?.[0] ?? "none"}/${path.split("/").pop()}`,
            external: true,
        }));
        /* Backgrounds of PatternFly's that this page does not show. */
        onResolve({ filter: /\.(jpg|svg)$/ }, ({ path }) => ({ path, external: true }));
    },
};

/** The licences of the packages that are in the bundle, as they ask for. */
function licences(metafile) {
    const packages = new Set(Object.keys(metafile.inputs)
            .map(input => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]).filter(name => name));

    return [...packages].sort().map(name => {
        const folder = `${here}/node_modules/${name}`;
        const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
        const file = ["LICENSE", "LICENSE.txt", "LICENSE.md"].map(part => `${folder}/${part}`).find(existsSync);

        return `${name} ${version}: ${license}\n\n${file ? readFileSync(file, "utf8") : ""}`;
    }).join("\n\n----\n\n");
}

mkdirSync(out, { recursive: true });
const { metafile } = await build({
    entryPoints: [`${here}/src/index.tsx`],
    outdir: out,
    bundle: true,
    minify: true,
    metafile: true,
    legalComments: "none",
    target: ["es2022"],
    jsx: "automatic",
    define: { "process.env.NODE_ENV": '"production"' },
    plugins: [cockpitFonts],
    logLevel: "warning",
});
writeFileSync(`${out}/THIRD-PARTY.txt`, licences(metafile));
for (const file of ["index.html", "manifest.json"])
    copyFileSync(`${here}/src/${file}`, `${out}/${file}`);
