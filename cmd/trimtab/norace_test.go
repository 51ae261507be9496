//go:build !race

package main

// raceDetector tells that memory is measured with the race detector's shadow.
const raceDetector = false

// unfolded is how large a bomb of the test gets, in bytes.
const unfolded = 64 << 20
