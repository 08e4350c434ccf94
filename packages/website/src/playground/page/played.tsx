import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { PlayerBar } from './player-bar.tsx'
import { STILL, usePlayer } from './use-player.ts'

/** Milliseconds of the film in one of watching, at first: a picture is there in some seconds. */
const SPEED = 5

interface PlayedProps {
  /** Milliseconds from the left of the pictures to their right. */
  readonly length: number
  /** Milliseconds that a step goes on. */
  readonly step: number
  /** Only to play and pause. */
  readonly embedded: boolean
  readonly children: ComponentChildren
}

/** Plays pictures whose time goes from left to right: what is still to come is behind a curtain. Who wants no motion sees all at once. */
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
