import { settled, type Value } from './control.ts'
import { type SceneName, sceneOf } from './scenes.ts'

/** All values that a run depends on. The same settings give the same run for everyone. */
export interface Settings {
  readonly scene: SceneName
  readonly values: Readonly<Record<string, Value>>
}

/** Settings with each value in its range. Missing and invalid values get their defaults. */
export function settingsOf(scene: unknown, asked: Readonly<Record<string, unknown>> = {}): Settings {
  const { name, controls } = sceneOf(scene)
  const given = new Map(Object.entries(asked))
  return {
    scene: name,
    values: Object.fromEntries(controls.map((control) => [control.name, settled(control, given.get(control.name))])),
  }
}

/** Settings from the search part of any address. */
export function readAddress(search: string): Settings {
  const parameters = new URLSearchParams(search)
  return settingsOf(parameters.get('scene'), Object.fromEntries(parameters))
}

/** The search part of an address. It contains only values that differ from their defaults. */
export function writeAddress({ scene, values }: Settings): string {
  const parameters = new URLSearchParams({ scene })
  for (const { name, fallback } of sceneOf(scene).controls) {
    const value = values[name]
    if (value !== undefined && (value !== fallback || name === 'seed')) parameters.set(name, String(value))
  }
  return `?${parameters}`
}

export function numberOf({ values }: Settings, name: string): number {
  const value = values[name]
  if (typeof value !== 'number') throw new TypeError(`The scene has no number "${name}".`)
  return value
}

export function textOf({ values }: Settings, name: string): string {
  return String(values[name] ?? '')
}
