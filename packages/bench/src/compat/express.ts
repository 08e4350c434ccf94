import { expressRateLimitStore } from '@weir/compat/express-rate-limit'
import type { Request, Response } from 'express'
import { MemoryStore, rateLimit } from 'express-rate-limit'
import { RedisStore } from 'rate-limit-redis'
import { Answer } from './answer.ts'
import type { Connections, Handles, Kind, Limit } from './limit.ts'

export async function express(kind: Kind, { name, limit, interval }: Limit, { weir, redis }: Connections): Promise<Handles> {
  const store = {
    weir: () => expressRateLimitStore(weir, { prefix: name }),
    redis: () =>
      new RedisStore({ prefix: name, sendCommand: (command: string, ...args: string[]) => redis.call(command, ...args) as never }),
    memory: () => new MemoryStore(),
  }[kind]()
  const middleware = rateLimit({ windowMs: interval, limit, store, validate: false })
  return async (ip) => {
    const answer = new Answer()
    let isNext = false
    await middleware({ ip, method: 'GET', url: '/', headers: {} } as Request, answer as unknown as Response, () => {
      isNext = true
    })
    return isNext
  }
}
