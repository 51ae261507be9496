//go:build race

package otlp

// largest is how large the bodies of tests get, in bytes. Under the race
// detector to unfold 16 MiB takes a busy machine longer than a request may.
const largest = 2 << 20
