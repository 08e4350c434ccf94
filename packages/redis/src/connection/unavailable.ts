import { WeirError } from '@weir/core'

/** Converts any error of a client to one for users, with the next step if only another setting helps. */
export function asWeirError(error: unknown, address: string): WeirError {
  if (error instanceof WeirError) return error
  // Only for a Cluster: ioredis' own error contains only that it tried all nodes.
  const { lastNodeError = error } = error as { readonly lastNodeError?: unknown }
  const message = (lastNodeError instanceof Error ? lastNodeError.message : String(lastNodeError)).replace(/\.$/, '')
  const step = nextStep(message)
  const what = /^[A-Z]+ /.test(message) ? 'rejected a command' : 'is unreachable'
  return new WeirError('WEIR_STORE_UNAVAILABLE', `Redis at ${address} ${what} (${message}). ${step ?? OTHERWISE}`, { cause: error })
}

/** Returns whether an error lasts until a setting changes, so that it needs a warning. */
export function isSetting(error: WeirError): boolean {
  return error.code === 'WEIR_STORE_UNAVAILABLE' && STEPS.some(([, step]) => error.message.includes(step))
}

function nextStep(message: string): string | undefined {
  return STEPS.find(([pattern]) => pattern.test(message))?.[1]
}

const OTHERWISE = 'Weir tries again. Check the server, its address and the network.'

/** The next step for an error of Redis, or of the client library. */
const STEPS: readonly (readonly [pattern: RegExp, step: string])[] = [
  [/sentinels.*NOAUTH/, 'These Sentinels need a password. Put it into the option "sentinelPassword" of ioredis.'],
  [
    /^NOAUTH/,
    'This Redis needs a password. Put it into the URL, as in redis://user:password@host:6379, or into the option "password" of the client.',
  ],
  [
    /^WRONGPASS|^ERR (?:invalid password|AUTH )/,
    'Check the user name and the password in the URL, or the options "username" and "password" of the client.',
  ],
  [
    /^NOPERM|user executing the script can't/,
    'Give this user of Redis the permissions under "Permissions" in the README of @weir/redis, for the keys and the channel of your "namespace".',
  ],
  [/^MOVED/, 'This server belongs to a Cluster. Use redisStore({ cluster: [{ host, port }] }).'],
  [/cluster support disabled/, 'This server belongs to no Cluster. Pass its URL to redisStore().'],
  [/ENOTFOUND/, 'No host has this name. Check the URL.'],
  [/unknown command '?sentinel/i, 'This server is no Sentinel. Check the port, which is usually 26379.'],
  [/DB index is out of range/, 'This server has fewer databases. Choose one from 0 to 15.'],
  [
    /certificate/,
    'Use the host name of its certificate. If the authority is your own, pass it to the client: { tls: { ca } } for ioredis, { socket: { tls: true, ca } } for node-redis.',
  ],
  [/secure TLS|SSL routines/, 'If this server does not use TLS, begin the URL with "redis:" in place of "rediss:".'],
  [/^DENIED/, 'This Redis answers its own machine only. Set a password there, or bind it to the address that you use.'],
]
