import type { IncomingMessage } from 'node:http'
import { WeirError } from '@weir/core'

/** What somebody wants: to look, or to block and unblock keys. */
export type Access = 'view' | 'act'

/** Who may see the page, and what can be done there. */
export interface DashboardOptions {
  /**
   * Whether the sender of a request may do this. Without it the page is shown on the machine itself only, and not through a
   * proxy. One that throws or rejects refuses. A stream is asked for again every ten minutes.
   */
  readonly authorize?: (request: IncomingMessage, access: Access) => boolean | Promise<boolean>
  /** Let those whom `authorize` allows to `'act'` block and unblock keys by hand. Default false. */
  readonly actions?: boolean
  /** Where the page is, e.g. `'/weir'`, for servers that do not cut the mount path off: requests elsewhere are passed on. */
  readonly path?: string
  /** Pages that may be open at once. Default 50. */
  readonly maxClients?: number
}

export interface CheckedOptions extends DashboardOptions {
  readonly actions: boolean
  readonly maxClients: number
}

const OPTIONS = ['authorize', 'actions', 'path', 'maxClients']

/** @throws WeirError */
export function checkOptions(options: DashboardOptions): CheckedOptions {
  for (const name of Object.keys(options)) {
    if (!OPTIONS.includes(name)) {
      throw new WeirError('WEIR_UNKNOWN_OPTION', `Unknown option "${name}". The dashboard has: ${OPTIONS.join(', ')}.`)
    }
  }
  const { authorize, actions = false, path, maxClients = 50 } = options
  if (authorize !== undefined && typeof authorize !== 'function') throw invalid('authorize', 'a function of a request and an access')
  if (typeof actions !== 'boolean') throw invalid('actions', 'true or false')
  if (actions && authorize === undefined) {
    throw new WeirError('WEIR_MISSING_OPTION', 'Option "actions" needs "authorize", a function that says who may block and unblock keys.')
  }
  if (path !== undefined && (typeof path !== 'string' || !/^(\/[^/?#]+)*$/.test(path)))
    throw invalid('path', 'a path such as "/weir", without a slash at its end')
  if (!Number.isInteger(maxClients) || maxClients < 1) throw invalid('maxClients', 'a whole number of at least 1')
  return { ...options, actions, maxClients }
}

function invalid(option: string, allowed: string): WeirError {
  return new WeirError('WEIR_INVALID_OPTION', `Option "${option}" must be ${allowed}.`)
}
