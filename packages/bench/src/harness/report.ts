import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { arch, cpus, platform, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import Table from 'cli-table3'
import pc from 'picocolors'

/** One line of a table: the measured case, and its figures. */
export type Row = Readonly<Record<string, string | number>>

/** The result of a bench. */
export interface Report {
  readonly title: string
  readonly rows: readonly Row[]
  /** The goals, and whether they are met. */
  readonly goals?: readonly Goal[]
}

export interface Goal {
  readonly what: string
  readonly value: number
  readonly most: number
}

export function show({ title, rows, goals = [] }: Report): void {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const table = new Table({ head: columns, style: { head: ['cyan'], compact: true } })
  for (const row of rows) table.push(columns.map((column) => String(row[column] ?? '')))
  console.log(`\n${pc.bold(title)}\n${table.toString()}`)
  for (const { what, value, most } of goals) {
    const mark = value <= most ? pc.green('reached') : pc.yellow('missed ')
    console.log(`  ${mark}  ${what}: ${round(value)} (at most ${most})`)
  }
}

export function round(value: number, digits = 3): number {
  return Number(value.toPrecision(digits))
}

const PEERS = [
  'express-rate-limit',
  'rate-limit-redis',
  'rate-limiter-flexible',
  '@fastify/rate-limit',
  'koa-ratelimit',
  '@upstash/ratelimit',
  'express',
  'fastify',
  'koa',
  'ioredis',
]

/** The machine and the versions of a measurement. */
export function surroundings(): object {
  const require = createRequire(import.meta.url)
  const versions = Object.fromEntries(PEERS.map((name) => [name, versionOf(require, name)]))
  return {
    date: new Date().toISOString(),
    node: process.version,
    v8: process.versions.v8,
    machine: { platform: platform(), arch: arch(), cpu: cpus()[0]?.model, cores: cpus().length, memory: totalmem() },
    versions,
  }
}

function versionOf(require: NodeJS.Require, name: string): string {
  // Some packages don't export their manifest.
  for (let directory = dirname(require.resolve(name)); directory !== dirname(directory); directory = dirname(directory)) {
    try {
      const manifest = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as { name?: string; version?: string }
      if (manifest.name === name && manifest.version !== undefined) return manifest.version
    } catch {
      // The manifest is not here but further up.
    }
  }
  return 'unknown'
}

export function writeJson(file: string, reports: Readonly<Record<string, readonly Report[]>>): void {
  writeFileSync(file, `${JSON.stringify({ ...surroundings(), reports }, undefined, 2)}\n`)
}
