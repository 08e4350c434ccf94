import { type Duration, parseDuration, WeirError } from '@weir/core'
import { checkOptions as checkNames, invalidOption, kindOf } from '@weir/core/sync'

/** Certificates for connections to etcd. PEM, as in `node:tls`. */
export interface EtcdTls {
  /**
   * Trusts servers with certificates that these authorities have signed. PEM.
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

/** The addresses of etcd's client ports, such as `'http://127.0.0.1:2379'`, or an object with these, a user and certificates. */
export type EtcdTarget =
  | string
  | readonly string[]
  | {
      /** Lists the members of one cluster, 1 to 32 addresses. The store uses one of them, and the next one if it is down. */
      readonly endpoints: string | readonly string[]
      /**
       * Signs in as this user of etcd. Throws `WEIR_INVALID_OPTION` without `password`.
       *
       * @default none
       */
      readonly username?: string
      /**
       * Sets the password of `username`. Throws `WEIR_INVALID_OPTION` without it.
       *
       * @default none
       */
      readonly password?: string
      /**
       * Sets certificates, for endpoints that begin with `https:`. Throws `WEIR_INVALID_OPTION` with others.
       *
       * @default none: the servers' certificates are checked by the authorities of Node.js
       * @see `@weir/core/docs/guides/etcd.md`
       */
      readonly tls?: EtcdTls
    }

/** Options of `etcdStore`, after the addresses. An invalid value throws `WEIR_INVALID_OPTION`, an unknown name `WEIR_UNKNOWN_OPTION`. */
export interface EtcdStoreOptions {
  /**
   * Begins the names of all keys: 1 to 100 letters, digits or any of `_ . : -`.
   *
   * So several applications can share an etcd. Processes with different namespaces share no counts.
   *
   * @default 'weir'
   */
  readonly namespace?: string
  /**
   * Limits how long a call to etcd waits before it counts as failed, and half as long while etcd is down: 10 ms to 60 s.
   *
   * Requests wait for etcd only with coordination `'central'` and `'leased'`, at most for `storeTimeout`.
   *
   * @default 1000
   */
  readonly timeout?: Duration
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
  if (!plain && !isObject(target)) {
    const allowed = `${ENDPOINT}, a list of them, or { endpoints }`
    throw new WeirError('WEIR_INVALID_OPTION', `etcdStore(): the first argument is ${kindOf(target)}. Use ${allowed}.`)
  }
  const given = plain ? { endpoints: target } : (target as Exclude<EtcdTarget, string | readonly string[]>)
  checkNames('etcdStore', given, ['endpoints', 'username', 'password', 'tls'], '')
  const { endpoints, username, password, tls = {} } = given as Exclude<EtcdTarget, string | readonly string[]>
  const list: readonly unknown[] = typeof endpoints === 'string' ? [endpoints] : Array.isArray(endpoints) ? endpoints : []
  if (list.length < 1 || list.length > MOST_ENDPOINTS) throw hidden('endpoints', endpoints, `1 to ${MOST_ENDPOINTS} addresses`)
  const urls = list.map(endpointOf)
  if ((username === undefined) !== (password === undefined)) throw hidden('password', password, '"username" and "password" together')
  if (username !== undefined && (typeof username !== 'string' || username === '')) throw hidden('username', username, 'a string')
  if (password !== undefined && typeof password !== 'string') throw hidden('password', password, 'a string')
  if (!isObject(tls)) throw hidden('tls', tls, 'an object such as { ca }')
  checkNames('etcdStore', tls, ['ca', 'cert', 'key', 'servername'], '', 'tls.')
  if (Object.keys(tls).length > 0 && urls.some(({ protocol }) => protocol === 'http:')) {
    throw new WeirError(
      'WEIR_INVALID_OPTION',
      'Option "tls" applies only to endpoints that begin with "https:". Change the endpoints, or remove "tls".',
    )
  }
  if ((tls.cert === undefined) !== (tls.key === undefined)) throw hidden('tls.key', tls.key, '"cert" and "key" together')
  const user = username === undefined || password === undefined ? undefined : { name: username, password }
  return { endpoints: urls, user, tls }
}

function endpointOf(text: unknown): URL {
  let url: URL | undefined
  try {
    url = new URL(text as string)
  } catch {
    throw hidden('endpoints', text, ENDPOINT)
  }
  const bare = url.username === '' && url.password === '' && url.search === '' && url.hash === '' && url.pathname === '/'
  if (!/^https?:$/.test(url.protocol) || !bare) throw hidden('endpoints', text, ENDPOINT)
  return url
}

/** @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION` */
export function checkOptions(options: EtcdStoreOptions, of = 'etcdStore'): CheckedOptions {
  checkNames(of, options, ['namespace', 'timeout'], 'an object such as { namespace: "app" } as second argument')
  const { namespace = 'weir' } = options
  if (typeof namespace !== 'string' || !/^[\w.:-]{1,100}$/.test(namespace)) {
    throw invalidOption('namespace', namespace, '1 to 100 letters, digits or any of _ . : -')
  }
  return { namespace, timeout: parseDuration(options.timeout ?? 1000, 'timeout', 10, 60_000) }
}

/** An error that shows only the kind of a value, because an address, a password or a certificate may be secret. */
function hidden(option: string, given: unknown, allowed: string): WeirError {
  return new WeirError('WEIR_INVALID_OPTION', `Option "${option}" is ${kindOf(given)} that can't be used. Use ${allowed}.`)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
