package cilantro

// fixed gives everybody its entitlement, whatever it needs (Resource-Fair).
type fixed struct{ units []int }

// Decide returns the entitlements, rounded down.
func (f fixed) Decide(int) ([]int, error) { return f.units, nil }

// Tell is not needed.
func (f fixed) Tell(int, []Report) {}

// shares returns the entitlements in whole units; what is left goes to the
// first names.
func shares(w *world) []int {
	out := make([]int, len(w.jobs))
	left := w.env.Capacity
	for i := range w.jobs {
		out[i] = int(w.jobs[i].share)
		left -= out[i]
	}
	for i := range out {
		if left > 0 {
			out[i]++
			left--
		}
	}
	return out
}
