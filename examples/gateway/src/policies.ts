import type { KeyOption, PolicyOptions } from '@weir/core'
import { header, paths } from '@weir/core/http'
import type { FastifyRequest } from 'fastify'
import type { LimitConfig } from './schema.ts'

/** Converts a limit of the configuration into a policy of Weir. */
export function toPolicy({ key, match, interval, cooldown, ...rest }: LimitConfig): PolicyOptions<FastifyRequest> {
  const defined = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)) as Pick<LimitConfig, 'name' | 'limit'>
  const matched = match === undefined ? {} : { match: paths(...[match].flat()) }
  const policy = { ...defined, ...matched, key: toKey(key), interval: interval as PolicyOptions['interval'] }
  return cooldown === undefined ? policy : { ...policy, cooldown: cooldown as NonNullable<PolicyOptions['cooldown']> }
}

function toKey(key: LimitConfig['key']): KeyOption<FastifyRequest> {
  const one = (source: Exclude<LimitConfig['key'], readonly unknown[]>) => (typeof source === 'string' ? source : header(source.header))
  return Array.isArray(key) ? key.map(one) : one(key)
}
