/** The command succeeded. */
export const FINE = 0
/** The rules are rejected or differ, another change was faster, or a condition of the user applies. */
export const REJECTED = 1
/** The command could not run: wrong use, or a file or store that could not be read or reached. */
export const WRONG_USE = 2
/** Rules are stricter than the compared ones: they reject requests that the others allow. */
export const STRICTER = 3
/** Rules are looser than the compared ones: they allow requests that the others reject, and reject no others. */
export const LOOSER = 4
