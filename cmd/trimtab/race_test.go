//go:build race

package main

// raceDetector tells that memory is measured with the race detector's shadow.
const raceDetector = true

// unfolded is how large a bomb of the test gets, in bytes: over the limit of a
// body, and still folded within the time of a request.
const unfolded = 18 << 20
