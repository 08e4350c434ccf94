import { WeirError } from '@weir/core'

/** How servers are trusted, and what this process shows them. PEM, as in `node:tls`. */
export interface EtcdTls {
  /**
   * Trusts servers whose certificates these authorities have signed. PEM.
   *
   * @default the authorities of Node.js
   */
  readonly ca?: string | Buffer | readonly (string | Buffer)[]
  /**
   * Identifies this process by a certificate, if the servers require one. PEM, together with `key`.
   *
   * @default none
   */
  readonly cert?: string | Buffer
  /**
   * Sets the private key of `cert`. PEM.
   *
   * @default none
   */
  readonly key?: string | Buffer
  /**
   * Sets the name in the servers' certificates, if it differs from the endpoint's.
   *
   * @default the host name of the endpoint
   */
  readonly servername?: string
}

/** Where etcd is: addresses of client ports, such as `'http://127.0.0.1:2379'`, or these with what it takes to be let in. */
export type EtcdTarget =
  | string
  | readonly string[]
  | {
      /** Lists the members of one cluster, 1 to 32. One is used, and if it is down, the next. */
      readonly endpoints: string | readonly string[]
      /**
       * Signs in as this user of etcd, together with `password`.
       *
       * @default none
       */
      readonly username?: string
      /**
       * Sets the user's password.
       *
       * @default none
       */
      readonly password?: string
      /**
       * Sets certificates, for endpoints that begin with `https:`.
       *
       * @default none: the servers' certificates are checked by the authorities of Node.js
       * @see `@weir/core/docs/guides/etcd.md`
       */
      readonly tls?: EtcdTls
    }

/** Options of `etcdStore` beside the connection. */
export interface EtcdStoreOptions {
  /**
   * Begins the names of all keys, so that several applications can share an etcd. Letters, digits and `_ . : -`.
   *
   * @default 'weir'
   */
  readonly namespace?: string
  /**
   * Limits how long a request to etcd waits before it counts as failed, and half as long while etcd is down. Milliseconds, 10 to 60,000.
   * Requests to your application wait for it only with coordination `'central'` and `'leased'`.
   *
   * @default 1000
   */
  readonly timeout?: number
}

export interface CheckedTarget {
  readonly endpoints: readonly URL[]
  readonly user: { readonly name: string; readonly password: string } | undefined
  readonly tls: EtcdTls
}

export interface CheckedOptions {
  readonly namespace: string
  readonly timeout: number
}

const MOST_ENDPOINTS = 32
const ENDPOINT = 'an address such as "http://127.0.0.1:2379", without a path, a user or a password'

/** @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION` */
export function checkTarget(target: EtcdTarget): CheckedTarget {
  const plain = typeof target === 'string' || Array.isArray(target)
  if (!plain && !isObject(target)) throw invalidOption('target', target, 'an address, a list of them, or an object with endpoints')
  const given = plain ? { endpoints: target } : (target as Exclude<EtcdTarget, string | readonly string[]>)
  knowOnly(given, ['endpoints', 'username', 'password', 'tls'])
  const { endpoints, username, password, tls = {} } = given as Exclude<EtcdTarget, string | readonly string[]>
  const list: readonly unknown[] = typeof endpoints === 'string' ? [endpoints] : Array.isArray(endpoints) ? endpoints : []
  if (list.length < 1 || list.length > MOST_ENDPOINTS) throw invalidOption('endpoints', endpoints, `1 to ${MOST_ENDPOINTS} addresses`)
  const urls = list.map(endpointOf)
  if ((username === undefined) !== (password === undefined)) throw invalidOption('password', password, 'given together with "username"')
  if (username !== undefined && (typeof username !== 'string' || username === '')) throw invalidOption('username', username, 'a text')
  if (password !== undefined && typeof password !== 'string') throw invalidOption('password', password, 'a text')
  if (!isObject(tls)) throw invalidOption('tls', tls, 'an object')
  knowOnly(tls, ['ca', 'cert', 'key', 'servername'])
  if (Object.keys(tls).length > 0 && urls.some(({ protocol }) => protocol === 'http:')) {
    throw invalidOption('tls', tls, 'left out, or all endpoints must begin with "https:"')
  }
  if ((tls.cert === undefined) !== (tls.key === undefined)) throw invalidOption('key', tls.key, 'given together with "cert"')
  const user = username === undefined || password === undefined ? undefined : { name: username, password }
  return { endpoints: urls, user, tls }
}

function endpointOf(text: unknown): URL {
  let url: URL | undefined
  try {
    url = new URL(text as string)
  } catch {
    throw invalidOption('endpoints', text, ENDPOINT)
  }
  const bare = url.username === '' && url.password === '' && url.search === '' && url.hash === '' && url.pathname === '/'
  if (!/^https?:$/.test(url.protocol) || !bare) throw invalidOption('endpoints', text, ENDPOINT)
  return url
}

/** @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION` */
export function checkOptions(options: EtcdStoreOptions): CheckedOptions {
  if (!isObject(options)) throw invalidOption('storeOptions', options, 'an object')
  knowOnly(options, ['namespace', 'timeout'])
  const { namespace = 'weir', timeout = 1000 } = options
  if (typeof namespace !== 'string' || !/^[\w.:-]{1,100}$/.test(namespace)) {
    throw invalidOption('namespace', namespace, '1 to 100 letters, digits or any of _ . : -')
  }
  if (typeof timeout !== 'number' || !(timeout >= 10 && timeout <= 60_000)) {
    throw invalidOption('timeout', timeout, 'a number of milliseconds from 10 to 60000')
  }
  return { namespace, timeout }
}

function knowOnly(given: object, known: readonly string[]): void {
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue
    throw new WeirError('WEIR_UNKNOWN_OPTION', `Option "${name}" of etcdStore is unknown; known are ${known.join(', ')}.`)
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An address or a text may hold a password: of these only the kind is shown. */
export function invalidOption(option: string, given: unknown, allowed: string): WeirError {
  const shown = typeof given === 'number' || typeof given === 'boolean' ? String(given) : given === null ? 'null' : typeof given
  return new WeirError('WEIR_INVALID_OPTION', `Option "${option}" is ${shown}; it must be ${allowed}.`)
}
