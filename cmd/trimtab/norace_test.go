//go:build !race

package main

// raceDetector tells that memory is measured with the race detector's shadow.
const raceDetector = false
