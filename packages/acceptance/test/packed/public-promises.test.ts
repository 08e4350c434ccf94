import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT, sourceEntries } from '@weir/tooling/workspace'
import { API, type Checker, type Symbol as Known, SignatureKind, SymbolFlags, type Type, TypeFlags } from 'typescript/unstable/sync'
import { afterAll, expect, it } from 'vitest'

/**
 * Each promise that a public package returns, and the case in which a process that does nothing else awaits it. The value is the name of a
 * case in `AWAITED`, `programs/awaits-alone.ts` or `programs/awaits-frameworks.ts`, or a test file.
 */
const AWAITED_IN: Readonly<Record<string, string>> = {
  'run of @weir/cli': 'packages/cli/test/ends-by-itself.test.ts',
  'limitedFetch of @weir/core': 'limitedFetch',
  'Throttler.checkAsync of @weir/core': 'checkAsync',
  'AdapterSide.decideAsync of @weir/core/adapter': 'decideAsync',
  'Throttler.reserveAsync of @weir/core': 'reserveAsync',
  'Throttler.acquire of @weir/core': 'acquire',
  'Throttler.tryAcquire of @weir/core': 'tryAcquire',
  'Throttler.waitFor of @weir/core': 'waitFor',
  'Throttler.schedule of @weir/core': 'schedule',
  'Throttler.wrap of @weir/core': 'wrap',
  'Throttler.usage of @weir/core': 'usage',
  'Throttler.flush of @weir/core': 'flush',
  'Throttler.close of @weir/core': 'close',
  'BetterAuthStorage.consume of @weir/compat/better-auth': 'stores of other libraries',
  'ExpressRateLimitStore.get of @weir/compat/express-rate-limit': 'stores of other libraries',
  'ExpressRateLimitStore.shutdown of @weir/compat/express-rate-limit': 'stores of other libraries',
  'NestThrottlerStorage.onApplicationShutdown of @weir/compat/nestjs-throttler': 'stores of other libraries',
  'FollowedRules.versions of @weir/core/adapter': 'followed rules: versions',
  'StoreConnection.sync of @weir/core': 'an exchange',
  'StoreConnection.audit of @weir/core': 'the audit log of a store',
  'AuditLog.add of @weir/core': 'the audit log of a store',
  'AuditLog.list of @weir/core': 'the audit log of a store',
  'auditLog of @weir/core/inspect': 'auditLog',
  'recordAction of @weir/core/inspect': 'recordAction',
  'StoreConnection.decider of @weir/core': 'what asks for decisions, and the end of a connection',
  'StoreConnection.close of @weir/core': 'what asks for decisions, and the end of a connection',
  'Guard.check of @weir/core/adapter': 'guard',
  'Guard.peek of @weir/core/adapter': 'a look with a function that never answers',
  'Guard.reject of @weir/core/adapter': 'a rejection that never gets its text',
  'Guard.handle of @weir/core/adapter': 'a handler that never answers',
  'loadCode of @weir/core/adapter': 'loadCode',
  'loadCode of @weir/core/sync': 'loadCode',
  'RulesFollower.ready of @weir/core/rules': 'followed rules: ready',
  'RulesFollower.close of @weir/core/rules': 'followed rules: close',
  'RulesSource.read of @weir/core/rules': 'file rules: read and replace',
  'RulesSource.replace of @weir/core/rules': 'file rules: read and replace',
  'RulesSource.history of @weir/core/rules': 'rules: history',
  'dashboard of @weir/dashboard/fastify': 'the dashboard in fastify',
  'EtcdRules.read of @weir/etcd': 'rules: read',
  'EtcdRules.replace of @weir/etcd': 'rules: replace',
  'EtcdRules.history of @weir/etcd': 'rules: history',
  'weir of @weir/fastify': 'fastify',
  'throttle of @weir/hono': 'hono',
  'throttle.peek of @weir/hono': 'hono',
  'ThrottleGuard.canActivate of @weir/nestjs': 'nestjs',
  'ThrottleGuard.peek of @weir/nestjs': 'nestjs',
  'RedisRules.read of @weir/redis': 'rules: read',
  'RedisRules.replace of @weir/redis': 'rules: replace',
  'RedisRules.history of @weir/redis': 'rules: history',
  'throttle of @weir/web': 'web',
  'throttle.rejection of @weir/web': 'web',
  'throttle.peek of @weir/web': 'web',
  'peekThrice of @weir/testing': 'hono',
  'trySpellings of @weir/testing': 'trySpellings',
  'faultProxy of @weir/testing': 'faultProxy',
  'FaultProxy.close of @weir/testing': 'faultProxy',
  'expectSimulation of @weir/testing': 'expectSimulation',
  'shorten of @weir/testing': 'shorten',
  'simulate of @weir/testing': 'simulate',
  'SimulatedStore.opened of @weir/testing': 'a clock of its own and a simulated store',
  'ManualClock.advance of @weir/testing': 'a clock of its own and a simulated store',
  'VirtualTime.settled of @weir/testing': 'virtual time',
  'VirtualTime.drained of @weir/testing': 'virtual time',
  'VirtualTime.runUntil of @weir/testing': 'virtual time',
}

/** Functions for adapters and policies, and functions of the user. No application awaits them. */
const NOBODY_AWAITS: readonly RegExp[] = [
  // Parts that are loaded later. `import()` keeps a process alive.
  /\.(background|periodic|leased|central) of @weir\/core$/,
  // Parts of `names` and `inspected` of `adapterOf`. Their callers keep the process alive.
  /^(Names|Asking|StoreReservations|Exchanging|CountsSynced|Coordinator|StoreExchange|Together|GateAtStore)\./,
  // Parts of the promise of a guard, which another case awaits.
  /^AdapterSide\.(refresh|sendDue) /,
  // A part of the syncs and decisions of a store, which other cases await.
  /^soon of @weir\/core\/sync$/,
  // Its contract allows it to stay pending.
  /^Decider\.decide /,
  // The promise of the guard, which another case awaits.
  /^throttle\.peek of @weir\/(express|koa)$/,
  // Throttles for another adapter, whose promise another case awaits.
  /^throttled of @weir\/web\/adapter$/,
  // The application of a contract. Its server keeps the process alive.
  /^handlerUnderTest of @weir\/testing$/,
  // Functions of the user, which options contain.
  /^(AdapterOptions|AddressKey|PolicyOptions|SimulatedNode)\./,
]

const project = fileURLToPath(new URL('../../node_modules/.weir-promises/tsconfig.json', import.meta.url))
const api = new API({ cwd: ROOT })
afterAll(() => {
  api.close()
  rmSync(join(project, '..'), { recursive: true, force: true })
})

/** Finds functions that return promises, and promises, in everything that users can reach from an export. */
class Search {
  readonly found = new Set<string>()
  readonly #checker: Checker
  readonly #seen = new Set<unknown>()

  constructor(checker: Checker) {
    this.#checker = checker
  }

  /** @param of the package's entry */
  walk(type: Type | undefined, name: string, of: string, depth = 0): void {
    // The depth is bounded, because types may contain themselves. No real path is as long.
    if (type === undefined || depth > 15) return
    if ((type.flags & TypeFlags.UnionOrIntersection) !== 0) {
      for (const part of (type as Type & { getTypes(): readonly Type[] }).getTypes()) this.walk(part, name, of, depth + 1)
      return
    }
    const symbol = type.getSymbol()
    if (symbol?.name === 'Promise' || symbol?.name === 'PromiseLike') {
      this.found.add(`${name} of ${of}`)
      for (const awaited of this.#checker.getTypeArguments(type as never)) this.walk(awaited, name, of, depth + 1)
      return
    }
    const calls = this.#checker.getSignaturesOfType(type, SignatureKind.Call)
    for (const signature of [...calls, ...this.#checker.getSignaturesOfType(type, SignatureKind.Construct)])
      this.walk(this.#checker.getReturnTypeOfSignature(signature), name, of, depth + 1)
    if (symbol === undefined || !isOurs(symbol)) return
    const own = calls.length === 0 && /^\w+$/.test(symbol.name) && !symbol.name.startsWith('__') ? symbol.name : undefined
    if (own !== undefined && this.#seen.has(symbol.id)) return
    if (own !== undefined) this.#seen.add(symbol.id)
    for (const member of this.#checker.getPropertiesOfType(type)) {
      const isInternal = this.#checker.getJsDocTagsOfSymbol(member).some((tag) => tag.name === 'internal')
      if (isInternal || !isOurs(member) || !/^\w+$/.test(member.name) || member.name === 'prototype') continue
      this.walk(this.#checker.getTypeOfSymbol(member), `${own ?? name}.${member.name}`, of, depth + 1)
    }
  }
}

function isOurs(symbol: Known): boolean {
  return symbol.declarations.some(({ path }) => /\/packages\/\w+\/src\//.test(path) && !path.includes('node_modules'))
}

it('each promise that a public package returns is awaited in a process of its own', () => {
  const files = sourceEntries()
  mkdirSync(join(project, '..'), { recursive: true })
  writeFileSync(project, JSON.stringify({ extends: join(ROOT, 'tsconfig.base.json'), files: [...files.values()] }))
  const loaded = api.updateSnapshot({ openProjects: [project] }).getProject(project)
  if (loaded === undefined) throw new Error('The project could not be opened')
  const { checker, program } = loaded
  const search = new Search(checker)
  // A class of core belongs to it, whatever other package returns it too.
  const coreFirst = [...files].sort(([one], [two]) => Number(two.startsWith('@weir/core')) - Number(one.startsWith('@weir/core')))
  for (const [name, file] of coreFirst) {
    const source = program.getSourceFile(file)
    const module = source && checker.getSymbolAtLocation(source)
    expect(module, name).toBeDefined()
    for (const exported of checker.getExportsOfModule(module as Known)) {
      const symbol = (exported.flags & SymbolFlags.Alias) !== 0 ? checker.getAliasedSymbol(exported) : exported
      // Exports that come from another package belong to that package.
      if ((symbol.flags & SymbolFlags.Value) !== 0 && isOurs(symbol) && belongs(symbol, file))
        search.walk(checker.getTypeOfSymbol(symbol), exported.name === 'default' ? symbol.name : exported.name, name)
    }
  }
  const asked = [...search.found].filter((name) => !NOBODY_AWAITS.some((one) => one.test(name)))
  expect(asked.toSorted()).toEqual(Object.keys(AWAITED_IN).toSorted())
})

/** Whether something is declared in the package of an entry. */
function belongs(symbol: Known, entry: string): boolean {
  const folder = (path: string) => /\/packages\/(\w+)\//.exec(path)?.[1]
  return symbol.declarations.some(({ path }) => folder(path) === folder(entry))
}

it('the cases in which promises are awaited are there', () => {
  const texts = [
    'testing/test/store-tests/awaited.ts',
    'acceptance/test/packed/programs/awaits-alone.ts',
    'acceptance/test/packed/programs/awaits-frameworks.ts',
  ].map((file) => readFileSync(join(ROOT, 'packages', file), 'utf8'))
  for (const name of Object.values(AWAITED_IN))
    expect(name.endsWith('.ts') ? existsSync(join(ROOT, name)) : texts.some((text) => text.includes(`'${name}'`)), name).toBe(true)
})
