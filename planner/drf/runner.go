package drf

// Runner runs the parts of a loop, possibly in parallel.
type Runner interface {
	// Threads returns the number of parts into which a loop should be divided, >= 1.
	Threads() int
	// Run calls f with 0 … n-1, each once, and returns when all calls have returned. The calls
	// share memory and write to different elements of it; the caller sees what they wrote.
	Run(n int, f func(part int))
}

// Serial is a [Runner] of one thread.
type Serial struct{}

// Threads returns 1.
func (Serial) Threads() int { return 1 }

// Run calls f with 0 … n-1, in order.
func (Serial) Run(n int, f func(part int)) {
	for part := range n {
		f(part)
	}
}
