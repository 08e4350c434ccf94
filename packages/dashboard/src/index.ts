export { type PasswordAccess, password } from './access/password.ts'
export { type DashboardHandler, dashboard } from './dashboard.ts'
export type { Access, AccessResult, Authorize, AuthorizeFunction, DashboardOptions, NamedAccess } from './options.ts'
