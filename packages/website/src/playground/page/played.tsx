import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { PlayerBar } from './player-bar.tsx'
import { STILL, usePlayer } from './use-player.ts'

/** Initial speed, in milliseconds of the film per millisecond, so that a picture is complete after some seconds. */
const SPEED = 5

interface PlayedProps {
  /** Milliseconds from the left of the pictures to their right. */
  readonly length: number
  /** Milliseconds of a step. */
  readonly step: number
  /** Shows only play and pause. */
  readonly embedded: boolean
  readonly children: ComponentChildren
}

/**
 * Plays pictures whose time runs from left to right. A curtain covers the future. With reduced motion everything is visible immediately.
 */
export function Played({ length, step, embedded, children }: PlayedProps) {
  const box = useRef<HTMLDivElement>(null)
  const player = usePlayer({
    length,
    begin: STILL ? length : 0,
    speed: SPEED,
    draw: (time) => box.current?.style.setProperty('--seen', String(time < length ? time / length : 2)),
  })
  return (
    <div ref={box}>
      <PlayerBar player={player} length={length} small={embedded} step="A little further" onStep={() => player.seek(player.now() + step)} />
      {children}
    </div>
  )
}
