export { type DashboardHandler, dashboard } from './dashboard.ts'
export type { Access, DashboardOptions } from './options.ts'
export type { DashboardThrottler } from './source.ts'
