/** The command succeeded. */
export const FINE = 0
/** The rules are rejected or differ, or another change was faster. */
export const REJECTED = 1
/** The command could not run: wrong use, or a file or store that could not be read or reached. */
export const WRONG_USE = 2
