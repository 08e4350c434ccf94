import type { IncomingMessage } from 'node:http'
import { WeirError } from '@weir/core'
import { checkOptions as checkNames, invalidOption, kindOf, missingOption } from '@weir/core/inspect'
import type { PasswordAccess } from './access/password.ts'

/** The right that an action needs: to look, or to block, unblock and reset keys. */
export type Access = 'view' | 'act'

/** A decision of `authorize` with a name for the audit log. */
export interface NamedAccess {
  /** Allows the request if it is exactly `true`. */
  readonly allow: boolean
  /** Names the person in the audit log. At most 100 characters are kept. */
  readonly name: string
}

/** `true`, or `{ allow: true, name: 'alice' }` with a name for the audit log. Other values reject the request. */
export type AccessResult = boolean | NamedAccess

/**
 * Decides whether the sender of a request may do this. Exactly `true` allows it, or `{ allow: true, name: 'alice' }`, or a promise of these
 * within a second. Other values and errors reject it. It is called with each request, and every ten minutes for a dashboard that stays
 * open.
 */
export type AuthorizeFunction<Request = IncomingMessage> = (request: Request, access: Access) => AccessResult | Promise<AccessResult>

/** Chooses who may see the dashboard: clients with a password, clients that a function accepts, or everyone who reaches the server. */
export type Authorize<Request = IncomingMessage> = PasswordAccess | AuthorizeFunction<Request> | 'none'

/** Options of the dashboard. */
export interface DashboardOptions<Request = IncomingMessage> {
  /**
   * Decides who may see the dashboard.
   *
   * - `password('…')`: people who sign in with this password.
   * - A function of the request and of `'view'` or `'act'`: requests for which it returns exactly `true`, or a promise of it within a
   *   second. `{ allow: true, name: 'alice' }` also allows the request, and names the person in the audit log.
   * - `'none'`: all who reach the server, by an IP address or as `localhost`. Only for servers that listen on a loopback address.
   *
   * With `actions`, it also decides who may block, unblock and reset keys. Throws `WEIR_MISSING_OPTION` if it is absent.
   *
   * @see `@weir/core/docs/guides/dashboard.md#who-may-see-it`
   */
  readonly authorize: Authorize<Request>
  /**
   * Lets people who may `'act'` block, unblock and reset keys in all processes.
   *
   * @default false
   */
  readonly actions?: boolean
  /**
   * Names the mount path, if your server leaves it in `request.url`.
   *
   * Such as `'/weir'`. Requests elsewhere are passed on.
   *
   * @default none: the server cuts the mount path off
   */
  readonly path?: string
  /**
   * Limits the open dashboards: at least 1.
   *
   * Further ones get 503.
   *
   * @default 50
   */
  readonly maxClients?: number
}

export interface CheckedOptions extends DashboardOptions {
  readonly actions: boolean
  readonly maxClients: number
}

const OPTIONS = ['authorize', 'actions', 'path', 'maxClients']

const MISSING = `The dashboard shows keys such as addresses and account names. Set "authorize":
  authorize: password(process.env.DASHBOARD_PASSWORD)   a sign-in page with a password
  authorize: (request, access) => …                     your function. Only exactly true allows access
  authorize: 'none'                                     every client. Only for a server that listens on a loopback address`

/** @throws WeirError */
export function checkOptions(options: DashboardOptions): CheckedOptions {
  const given: unknown = options ?? {}
  checkNames('dashboard', given, OPTIONS, 'an object such as { authorize: password("…") }')
  const { authorize, actions = false, path, maxClients = 50 } = given as DashboardOptions
  if (authorize === undefined) throw missingOption('authorize', MISSING)
  if (authorize !== 'none' && typeof authorize !== 'function' && !isPassword(authorize)) {
    throw new WeirError(
      'WEIR_INVALID_OPTION',
      `Option "authorize" is ${kindOf(authorize)}. Use password("…"), a function of the request and the access, or 'none'.`,
    )
  }
  if (typeof actions !== 'boolean') throw invalidOption('actions', actions, 'true or false')
  if (path !== undefined && (typeof path !== 'string' || !/^(\/[^/?#]+)*$/.test(path)))
    throw invalidOption('path', path, 'a path such as "/weir", without a slash at its end')
  if (!Number.isInteger(maxClients) || maxClients < 1) throw invalidOption('maxClients', maxClients, 'a whole number of at least 1')
  return { authorize, actions, maxClients, ...(path !== undefined && { path }) }
}

/** Checks the shape instead of the class, because another copy of this package may have created it, e.g. the one for CommonJS. */
function isPassword(authorize: object): boolean {
  const { kind, matches, sign } = (authorize ?? {}) as Readonly<Record<string, unknown>>
  return kind === 'password' && typeof matches === 'function' && typeof sign === 'function'
}
