/* SPDX-License-Identifier: MIT */
/** How tenants look in pictures: each has one colour (index.css), wherever it is shown. */

const COLORS = 12;

export function tenantLabel(tenant: string): string {
    return tenant || "no tenant";
}

/**
 * A CSS colour for a tenant.
 * @param all - every tenant of the host, sorted, so that all pictures show the same colours
 */
export function tenantColor(tenant: string, all: readonly string[]): string {
    const index = all.indexOf(tenant);

    return !tenant || index < 0 ? "var(--vgpu-no-tenant)" : `var(--vgpu-tenant-${index % COLORS})`;
}
