//go:build !race

package otlp

// largest is how large the bodies of tests get, in bytes: as a receiver's do.
const largest = 16 << 20
