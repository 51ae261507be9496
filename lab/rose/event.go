package rose

// what an event is about.
type what uint8

const (
	// round: the aggregator filters.
	round what = iota
	// beat: a machine's heartbeat to the resource manager.
	beat
	// ask: a job manager looks after its tasks.
	ask
	// move: a task ends on a machine, or its agent decides.
	move
)

// event is something that happens at a time, to a machine or a job.
type event struct {
	at   float64
	what what
	who  int32
	// turn: a machine's event of an earlier turn is void, it has another since.
	turn uint32
}

func (e *event) before(o *event) bool {
	switch {
	case e.at != o.at:
		return e.at < o.at
	case e.what != o.what:
		return e.what < o.what
	}
	return e.who < o.who
}

// agenda is a binary heap of events, the next first.
type agenda []event

func (a *agenda) push(e event) {
	h := append(*a, e)
	i := len(h) - 1
	for i > 0 && h[i].before(&h[(i-1)/2]) {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		i = (i - 1) / 2
	}
	*a = h
}

func (a *agenda) pop() event {
	h := *a
	top, n := h[0], len(h)-1
	h[0] = h[n]
	h = h[:n]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < n; c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*a = h
	return top
}
