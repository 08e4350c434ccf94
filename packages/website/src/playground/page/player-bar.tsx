import { useEffect } from 'preact/hooks'
import { duration } from '../tables/format.ts'
import type { Player } from './use-player.ts'

const SPEEDS = [
  [0.01, '1/100'],
  [0.1, '1/10'],
  [1, '1'],
  [5, '5'],
  [30, '30'],
] as const

interface PlayerBarProps {
  readonly player: Player
  /** Milliseconds. */
  readonly length: number
  /** Shows only play and pause. */
  readonly small: boolean
  /** A description of a step. */
  readonly step: string
  readonly onStep: () => void
}

/** Play, pause, step, speed and the position of the film. The space bar plays and pauses, a full stop steps. */
export function PlayerBar({ player, length, small, step: where, onStep }: PlayerBarProps) {
  const step = (): void => {
    player.pause()
    onStep()
  }
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.target !== document.body || event.ctrlKey || event.metaKey || event.altKey) return
      if (event.key === ' ') player.toggle()
      else if (event.key === '.') step()
      else return
      event.preventDefault()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  })
  return (
    <fieldset class="player" aria-label="Player">
      <button type="button" class="play" onClick={() => player.toggle()}>
        {player.playing ? 'Pause' : 'Play'}
      </button>
      {!small && (
        <>
          <button type="button" class="quiet" onClick={step} title={where}>
            Step
          </button>
          <label>
            Speed{' '}
            <select value={String(player.speed)} onChange={({ currentTarget }) => player.setSpeed(Number(currentTarget.value))}>
              {SPEEDS.map(([value, label]) => (
                <option key={value} value={String(value)}>
                  {label} ×
                </option>
              ))}
            </select>
          </label>
          <input
            class="moment"
            type="range"
            aria-label="Moment"
            aria-valuetext={duration(player.time)}
            min={0}
            max={Math.round(length)}
            value={Math.round(player.time)}
            onInput={({ currentTarget }) => player.seek(Number(currentTarget.value))}
          />
        </>
      )}
      {/* No <output>, which would be read aloud at each change. */}
      <span class="clock">
        {duration(player.time)} of {duration(length)}
      </span>
    </fieldset>
  )
}
