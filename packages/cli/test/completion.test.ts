import { spawnSync } from 'node:child_process'
import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { programOf } from '../src/program.ts'
import { Output } from '../src/terminal/output.ts'
import { weir } from './weir.ts'

const { stdin, stdout, stderr } = process
const program: Command = programOf(new Output({ stdin, stdout, stderr, env: {} }), '0', () => {})

/** Runs a shell with the script and a test after it. Returns the words that it completes. */
async function completed(shell: string, test: string, ...args: readonly string[]): Promise<readonly string[]> {
  const { out } = await weir(['completion', shell])
  // Only an interactive zsh with its completion system has `compdef`.
  const before = shell === 'zsh' ? 'compdef() { : }\n' : ''
  const { stdout, stderr, status } = spawnSync(shell, [...args, '-c', `${before}${out}\n${test}`], { encoding: 'utf8', timeout: 20_000 })
  expect([status, stderr]).toEqual([0, ''])
  return stdout.trim().split(/\s+/)
}

const lacks = (shell: string): boolean => spawnSync(shell, ['-c', 'true']).error !== undefined

describe.skipIf(lacks('bash'))('bash completes', () => {
  it.each([
    [['pl'], ['plan']],
    [['plan', '--fo'], ['--format']],
    [['plan', '--format', 'm'], ['md']],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish'],
    ],
    [['plan', 'access'], ['']],
  ])('%j', async (words, expected) => {
    const test = `IFS=,; COMP_WORDS=(weir ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _weir; echo "\${COMPREPLY[@]}"`
    expect(await completed('bash', test, '--norc')).toEqual(expected)
  })
})

describe.skipIf(lacks('fish'))('fish completes', () => {
  it.each([
    ['weir pl', 'plan'],
    ['weir plan --fo', '--format'],
    ['weir plan --format m', 'md'],
    ['weir completion z', 'zsh'],
  ])('%s', async (text, expected) => {
    expect(await completed('fish', `complete -C '${text}'`, '--no-config')).toContain(expected)
  })
})

describe.skipIf(lacks('zsh'))('zsh completes', () => {
  const stubs = '_describe() { print -l $commands }; _arguments() { print -l -- "$@" }'
  it.each([
    ['words=(weir ""); CURRENT=2', /^plan:replay$/],
    ['words=(weir plan ""); CURRENT=3', /^--format\[csv$/],
    ['words=(weir completion ""); CURRENT=3', /^1:argument:\(bash$/],
  ])('%s', async (state, expected) => {
    const found = await completed('zsh', `${stubs}\n${state}; _weir`, '-f')
    expect(found.some((word) => expected.test(word))).toBe(true)
  })
})

it('each command has examples in its help, with options that exist', async () => {
  for (const command of program.commands) {
    if (command.name() === 'help') continue
    const { out } = await weir([command.name(), '--help'])
    const [, examples] = out.split('Examples:\n')
    expect(examples, command.name()).toContain(`weir ${command.name()} `)
    for (const [flag] of (examples ?? '').matchAll(/--[a-z-]+/g)) expect(command.options.map(({ long }) => long)).toContain(flag)
  }
})

it('another shell is rejected', async () => {
  expect(await weir(['completion', 'tcsh'])).toMatchObject({ code: 2, err: expect.stringContaining('bash, zsh, fish') })
})
