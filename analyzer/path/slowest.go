package path

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"

	"github.com/trimtab/trimtab"
)

// slow is one request that may become an exemplar.
type slow struct {
	duration int64
	trace    [16]byte
	span     uint64
}

// slowest has the slowest requests of one workload and interval, at most one per trace. The result
// does not depend on the order in which they are added. The zero value is empty and ready for use.
type slowest struct {
	held [trimtab.MaxExemplars]slow
	n    int
}

// before reports whether a comes before b: a total order with the slowest first.
func (a *slow) before(b *slow) bool {
	return cmp.Or(cmp.Compare(b.duration, a.duration), bytes.Compare(a.trace[:], b.trace[:]), cmp.Compare(a.span, b.span)) < 0
}

// least returns the shortest duration that would be kept, in ns.
func (l *slowest) least() int64 {
	if l.n < len(l.held) {
		return 0
	}
	return l.held[l.n-1].duration
}

// add keeps x if it is among the slowest and its trace and span ids are set.
func (l *slowest) add(x slow) {
	if x.trace == [16]byte{} || x.span == 0 {
		return
	}
	for i := range l.n {
		if l.held[i].trace != x.trace {
			continue
		}
		if l.held[i].before(&x) {
			return
		}
		copy(l.held[i:l.n], l.held[i+1:l.n])
		l.n--
		break
	}
	i := l.n
	for i > 0 && x.before(&l.held[i-1]) {
		i--
	}
	if i == len(l.held) {
		return
	}
	l.n = min(l.n+1, len(l.held))
	copy(l.held[i+1:l.n], l.held[i:l.n])
	l.held[i] = x
}

// exemplars returns the kept requests, the slowest first; nil if there are none.
func (l *slowest) exemplars() []trimtab.Exemplar {
	var out []trimtab.Exemplar
	for _, x := range l.held[:l.n] {
		out = append(out, trimtab.Exemplar{
			TraceID: hex.EncodeToString(x.trace[:]),
			SpanID:  hex.EncodeToString(binary.BigEndian.AppendUint64(nil, x.span)),
			Latency: trimtab.Seconds(seconds(x.duration)),
		})
	}
	return out
}
