import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { build } from 'esbuild'
import { guard } from './guard.ts'
import { SOURCE_CONDITION } from './workspace.js'

/** A day from which Workers have the modules of Node.js without a flag. */
const COMPATIBLE_SINCE = '2026-09-01'

/**
 * A Worker as one module, as `wrangler` bundles it.
 *
 * @param sources - uses the sources of this workspace, not its built packages
 */
export async function bundleWorker(entry: string, sources = true): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    platform: 'browser',
    conditions: [...(sources ? [SOURCE_CONDITION] : []), 'workerd', 'worker'],
    external: ['node:*', 'cloudflare:*'],
    logLevel: 'warning',
  })
  return outputFiles[0]?.text ?? ''
}

/** Options of `Workerd.start`. */
export interface WorkerdOptions {
  /** Further ports of the first isolate. Their requests have the header `x-entrance` with the place of the port in `ports`. */
  readonly entrances?: number
  /** Compatibility flags of the Worker. */
  readonly flags?: readonly string[]
}

/** workerd, the runtime of Cloudflare Workers, with several isolates of one Worker and its Durable Objects. */
export class Workerd {
  readonly #directory: string
  #process: ChildProcess | undefined
  /** The ports of the isolates, and after them those of the entrances. */
  readonly ports: number[] = []
  readonly #sockets: number
  /** Everything that workerd has printed. */
  log = ''

  private constructor(directory: string, sockets: number) {
    this.#directory = directory
    this.#sockets = sockets
  }

  /**
   * @param code - the module of the Worker
   * @param classes - its Durable Objects: the binding of each, and the class that the module exports
   */
  static async start(
    code: string,
    isolates: number,
    classes: Readonly<Record<string, string>>,
    { entrances = 0, flags = [] }: WorkerdOptions = {},
  ): Promise<Workerd> {
    const directory = mkdtempSync(join(tmpdir(), 'weir-workerd-'))
    const workerd = new Workerd(directory, isolates + entrances)
    writeFileSync(join(directory, 'worker.js'), code)
    writeFileSync(join(directory, 'config.capnp'), configOf(directory, isolates, classes, { entrances, flags }))
    await workerd.begin()
    return workerd
  }

  /** Starts the process, also again, with the storage of the one before. */
  async begin(): Promise<void> {
    const { default: binary } = createRequire(import.meta.url)('workerd') as { readonly default: string }
    const options = ['serve', '--experimental', '--verbose', '--control-fd=3', join(this.#directory, 'config.capnp')]
    const child = spawn(binary, options, { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] })
    this.#process = child
    guard(child, this.#directory)
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => (this.log += text.toString()))
    let left = this.#sockets
    const listening = new Promise<void>((resolve, reject) => {
      child.once('exit', () => reject(new Error(`workerd has ended: ${this.log.slice(-2_000)}`)))
      createInterface(child.stdio[3] as Readable).on('line', (line) => {
        const { event, socket, port } = JSON.parse(line) as { event: string; socket: string; port: number }
        if (event !== 'listen') return
        this.ports[Number(socket)] = port
        if (--left === 0) resolve()
      })
    })
    await listening
  }

  /** The address of an isolate. */
  url(isolate: number, path: string): string {
    return `http://127.0.0.1:${this.ports[isolate]}${path}`
  }

  fetch(isolate: number, path: string, init?: RequestInit): Promise<Response> {
    return fetch(this.url(isolate, path), init)
  }

  /** Kills the process. Its storage stays for `begin`. */
  async end(): Promise<void> {
    const child = this.#process
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  async close(): Promise<void> {
    await this.end()
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

function configOf(
  directory: string,
  isolates: number,
  classes: Readonly<Record<string, string>>,
  { entrances, flags }: Required<WorkerdOptions>,
): string {
  const text = JSON.stringify
  const worker = `modules = [(name = "worker.js", esModule = embed "worker.js")], compatibilityDate = ${text(COMPATIBLE_SINCE)}, compatibilityFlags = ${text(flags)}`
  const all = Object.entries(classes)
  const namespaces = all.map(([, name]) => `(className = ${text(name)}, uniqueKey = ${text(name)}, enableSql = true)`)
  const bindings = all.map(
    ([binding, name]) => `(name = ${text(binding)}, durableObjectNamespace = (className = ${text(name)}, serviceName = "objects"))`,
  )
  const ids = Array.from({ length: isolates }, (_, isolate) => isolate)
  const sockets = Array.from({ length: isolates + entrances }, (_, place) => {
    const isEntrance = place >= isolates
    const http = isEntrance ? `injectRequestHeaders = [(name = "x-entrance", value = "${place}")]` : ''
    return `(name = "${place}", address = "127.0.0.1:0", http = (${http}), service = "isolate ${isEntrance ? 0 : place}")`
  })
  // An isolate connects only to this machine: the cases of the adapter contract send requests to their own Worker.
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "machine", network = (allow = ["private"])),
    (name = "disk", disk = (path = ${text(directory)}, writable = true)),
    (name = "objects", worker = (${worker}, durableObjectNamespaces = [${namespaces.join(', ')}], durableObjectStorage = (localDisk = "disk"), bindings = [${bindings.join(', ')}])),
    ${ids.map((id) => `(name = "isolate ${id}", worker = (${worker}, globalOutbound = "machine", bindings = [${bindings.join(', ')}])),`).join('\n    ')}
  ],
  sockets = [${sockets.join(', ')}]
);
`
}
