/* SPDX-License-Identifier: MIT */
/** Cockpit's choice of light or dark, which its shell keeps in the browser's storage for all pages. */

const KEY = "shell:style";

function apply() {
    const style = localStorage.getItem(KEY) || "auto";
    const dark = style === "dark" || (style === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);

    document.documentElement.classList.toggle("pf-v6-theme-dark", dark);
}

/** Follows the choice from now on. */
export function followTheme() {
    apply();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
    window.addEventListener("storage", event => {
        if (event.key === KEY)
            apply();
    });
    window.addEventListener("cockpit-style", apply);
}
