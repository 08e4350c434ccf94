import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis'
import type { ExecutionContext } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import { ThrottlerGuard, type ThrottlerStorage, ThrottlerStorageService } from '@nestjs/throttler'
import { nestThrottlerStorage } from '@weir/compat/nestjs-throttler'
import 'reflect-metadata'
import { Answer, isAllowed } from './answer.ts'
import type { Connections, Handles, Kind, Limit } from './limit.ts'

export async function nest(kind: Kind, { name, limit, interval }: Limit, { weir, redis }: Connections): Promise<Handles> {
  const storage: ThrottlerStorage = {
    weir: () => nestThrottlerStorage(weir),
    redis: () => new ThrottlerStorageRedisService(redis),
    memory: () => new ThrottlerStorageService(),
  }[kind]()
  const guard = new ThrottlerGuard({ throttlers: [{ name, limit, ttl: interval }] }, storage, new Reflector())
  await guard.onModuleInit()
  class Controller {}
  const handler = () => {}
  return async (ip) => {
    const http = { getRequest: () => request, getResponse: () => answer }
    const request = { ip, headers: {} }
    const answer = new Answer()
    const context = { getHandler: () => handler, getClass: () => Controller, switchToHttp: () => http } as unknown as ExecutionContext
    return isAllowed(guard.canActivate(context))
  }
}
