import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { OAuthServerProvider } from '@modelcontextprotocol/sdk/server/auth/provider.js'
import { type AuthRouterOptions, mcpAuthRouter } from '@modelcontextprotocol/sdk/server/auth/router.js'
import { memoryStore, type Store as WeirStore } from '@weir/core'
import express from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { HOUR, keeping, ownNamespace, ownRedis, storeOver } from './express-rate-limit/support.ts'

const redis = ownRedis()
const LIMIT = 3

/** Has one client, which has registered itself, and no token. */
const provider = {
  clientsStore: {
    getClient: (id) => (id === 'app' ? { client_id: id, redirect_uris: ['http://localhost/done'] } : undefined),
    registerClient: (client) => ({ client_id: 'app', ...client }),
  },
  authorize: async (_client, { redirectUri }, res) => res.redirect(redirectUri),
  revokeToken: async () => {},
  challengeForAuthorizationCode: async () => '',
  exchangeAuthorizationCode: async () => ({ access_token: 'a', token_type: 'bearer' }),
  exchangeRefreshToken: async () => ({ access_token: 'a', token_type: 'bearer' }),
  verifyAccessToken: async (token) => ({ token, clientId: 'app', scopes: [] }),
} satisfies OAuthServerProvider

/** A request for each endpoint, and the status of its response below the limit. */
const REQUESTS: Readonly<Record<string, [status: number, type: string, body: string]>> = {
  authorize: [302, 'application/x-www-form-urlencoded', 'client_id=app&response_type=code&code_challenge=x&code_challenge_method=S256'],
  token: [200, 'application/x-www-form-urlencoded', 'client_id=app&grant_type=refresh_token&refresh_token=x'],
  register: [201, 'application/json', '{"redirect_uris":["http://localhost/done"]}'],
  revoke: [200, 'application/x-www-form-urlencoded', 'client_id=app&token=x'],
}
const ENDPOINTS = Object.keys(REQUESTS)

/** The options of the router with one store for each endpoint, over one store value. */
function limits(value: WeirStore, more: object = {}): Partial<AuthRouterOptions> {
  const of = (prefix: string) => ({ rateLimit: { store: storeOver(value, { prefix }), ...more } })
  return {
    authorizationOptions: of('authorize'),
    tokenOptions: of('token'),
    clientRegistrationOptions: of('register'),
    revocationOptions: of('revoke'),
  }
}

/** An authorization server. Returns a function that sends a request to an endpoint. */
async function authorizationServer(options: Partial<AuthRouterOptions>) {
  const app = express()
  app.set('env', 'test')
  app.use(mcpAuthRouter({ provider, issuerUrl: new URL('http://localhost'), ...options }))
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  })
  return async (endpoint: string) => {
    const [, type, body] = REQUESTS[endpoint] ?? []
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/${endpoint}`
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': `${type}` }, body: `${body}`, redirect: 'manual' })
    return { status: response.status, text: await response.text() }
  }
}

test('two processes with one Redis reject after the limit, at each endpoint alone', async () => {
  const namespace = ownNamespace()
  const logger = keeping()
  const process = () => authorizationServer(limits(redis.process(namespace), { limit: LIMIT, windowMs: HOUR, logger }))
  const [one, other] = [await process(), await process()]
  for (const endpoint of ENDPOINTS) {
    for (let request = 1; request <= LIMIT; request++) expect((await one(endpoint)).status).toBe(REQUESTS[endpoint]?.[0])
    expect((await one(endpoint)).status).toBe(429)
    await expect.poll(async () => (await other(endpoint)).status).toBe(429)
    expect(JSON.parse((await other(endpoint)).text)).toMatchObject({ error: 'too_many_requests' })
  }
  expect(logger.lines).toEqual([])
})

test('the limits of the SDK stay, if only a store is passed', async () => {
  const value = memoryStore()
  await authorizationServer(limits(value))
  const { throttler } = storeOver(value)
  const found = Object.fromEntries(throttler.policies.map(({ name, limit, interval }) => [name, [limit, interval]]))
  expect(found).toEqual({
    authorize: [100, 900_000],
    token: [50, 900_000],
    register: [20, 3_600_000],
    revoke: [50, 900_000],
  })
})
