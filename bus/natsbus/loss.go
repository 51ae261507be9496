package natsbus

import (
	"sync"
	"time"
)

const (
	// lateness is how long a message may arrive after its successors before it counts as lost;
	// core NATS reorders only when routes change.
	lateness = time.Second
	// maxGaps bounds the open gaps of one sequence, maxSequences the sequences
	// that are followed, so that no sender can make a subscriber grow.
	maxGaps      = 64
	maxSequences = 1 << 16
)

// losses counts the missing messages of the sequences that a subscription receives. It is safe for
// concurrent use.
type losses struct {
	mu        sync.Mutex
	sequences map[sequenceID]*sequence
	lost      uint64
}

// sequenceID identifies a sequence: the messages of one publisher on one subject.
type sequenceID struct {
	source      string
	incarnation uint64
	subject     string
}

// sequence is the state of one sequence: everything before next has arrived,
// was counted as lost, or is in gaps.
type sequence struct {
	next uint64
	gaps []gap
}

// gap is the open range [from, to) that was first missed at since.
type gap struct {
	from, to uint64
	since    time.Time
}

// arrived records that message n of the sequence id arrived.
func (l *losses) arrived(id sequenceID, n uint64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sequences == nil {
		l.sequences = map[sequenceID]*sequence{}
	}
	s := l.sequences[id]
	if s == nil {
		if len(l.sequences) >= maxSequences {
			l.forget()
		}
		l.sequences[id] = &sequence{next: n + 1}
		return
	}
	switch {
	case n == s.next:
		s.next++
	case n > s.next:
		if len(s.gaps) >= maxGaps {
			l.lost += s.gaps[0].to - s.gaps[0].from
			s.gaps = s.gaps[1:]
		}
		s.gaps = append(s.gaps, gap{s.next, n, now})
		s.next = n + 1
	default:
		s.late(n)
	}
}

// late closes the part of a gap that n fills; a repeated n fills none.
func (s *sequence) late(n uint64) {
	for i, g := range s.gaps {
		if n < g.from || n >= g.to {
			continue
		}
		rest := append([]gap(nil), s.gaps[:i]...)
		if g.from < n {
			rest = append(rest, gap{g.from, n, g.since})
		}
		if n+1 < g.to {
			rest = append(rest, gap{n + 1, g.to, g.since})
		}
		s.gaps = append(rest, s.gaps[i+1:]...)
		return
	}
}

// forget drops one sequence, and counts its missing messages as lost.
func (l *losses) forget() {
	for id, s := range l.sequences {
		for _, g := range s.gaps {
			l.lost += g.to - g.from
		}
		delete(l.sequences, id)
		return
	}
}

// total returns how many messages were lost up to now; with all set, those that could still be
// late count too. It never decreases.
func (l *losses) total(now time.Time, all bool) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sequences {
		keep := s.gaps[:0]
		for _, g := range s.gaps {
			if all || now.Sub(g.since) > lateness {
				l.lost += g.to - g.from
			} else {
				keep = append(keep, g)
			}
		}
		s.gaps = keep
	}
	return l.lost
}

// lossBook adds up the losses of all subscriptions to one kind. The members of a group that share
// a Bus share one count, since each receives only some of the messages; members elsewhere do not,
// so a group of a Shed kind belongs on one Bus.
type lossBook struct {
	mu    sync.Mutex
	open  map[*losses]int // with the number of members
	group map[string]*losses
	ended uint64
}

// join returns the losses that a member of group counts in; "" is alone.
func (b *lossBook) join(group string) *losses {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		b.open, b.group = map[*losses]int{}, map[string]*losses{}
	}
	l := b.group[group]
	if l == nil {
		l = new(losses)
	}
	if group != "" {
		b.group[group] = l
	}
	b.open[l]++
	return l
}

// leave ends a membership; the last member's count is kept as it is.
func (b *lossBook) leave(group string, l *losses) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[l]--; b.open[l] > 0 {
		return
	}
	b.ended += l.total(time.Time{}, true)
	delete(b.open, l)
	if group != "" {
		delete(b.group, group)
	}
}

func (b *lossBook) total(now time.Time) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.ended
	for l := range b.open {
		n += l.total(now, false)
	}
	return n
}
