// Runs from the packed tarball, in the empty projects of packages/acceptance. Sends three requests to a limit of 2.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { run } from '@weir/cli'

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-packed-cli-'))
  const rules = join(folder, 'rules.yaml')
  writeFileSync(rules, 'version: 1\npolicies:\n  - { key: ip, limit: 2, interval: 1h }\n')
  const log = '{"time":1772884801,"ip":"192.0.2.1"}\n'.repeat(3)
  let text = ''
  const stdout = new Writable({
    write(piece, _encoding, done) {
      text += String(piece)
      done()
    },
  })
  const surroundings = { stdin: Readable.from([Buffer.from(log)]), stdout, stderr: process.stderr, env: {} }
  await run(['plan', '-', '--rules', rules, '--nodes', '1', '--format', 'json'], surroundings, '0')
  const { plan } = JSON.parse(text) as { plan: { allowed: number; rejected: number } }
  console.log([...Array(plan.allowed).fill('allowed'), ...Array(plan.rejected).fill('rejected')].join(' '))
  rmSync(folder, { recursive: true })
}

void main()
