package path

import "math/bits"

// lateness counts by how much spans came late, in classes of a quarter of an octave
// from 16.8 ms to 69 s: what is less counts in the first, what is more in the last.
type lateness [lateClasses]uint16

const (
	lateClasses = 48
	// leastLate is the logarithm of the upper end of the first class, in ns.
	leastLate = 24
	// tail is the share of the spans that may come later than what quantile returns.
	tail = 0.005
)

// lateClass returns the class of a lateness in ns.
func lateClass(ns int64) int {
	if ns < 1<<leastLate {
		return 0
	}
	octave := bits.Len64(uint64(ns)) - 1
	quarter := int(ns>>(octave-2)) & 3
	return min(1+4*(octave-leastLate)+quarter, lateClasses-1)
}

// lateUpper returns the upper end of a class, in ns.
func lateUpper(class int) int64 {
	if class == 0 {
		return 1 << leastLate
	}
	octave, quarter := leastLate+(class-1)/4, int64(class-1)%4
	return (5 + quarter) << (octave - 2)
}

// add counts one span.
func (l *lateness) add(ns int64) {
	k := lateClass(ns)
	if l[k]++; l[k] == 1<<16-1 {
		l.fade()
	}
}

// fade halves the weight of what was seen before.
func (l *lateness) fade() {
	for k := range l {
		l[k] /= 2
	}
}

// spans returns how many spans are counted.
func (l *lateness) spans() (n int) {
	for _, v := range l {
		n += int(v)
	}
	return n
}

// quantile returns the lateness, in ns, that all but a share of [tail] stay below; false: nothing
// is counted.
func (l *lateness) quantile() (ns int64, ok bool) {
	n := l.spans()
	above := 0
	for k := lateClasses - 1; k >= 0; k-- {
		if above += int(l[k]); above > int(tail*float64(n)) {
			return lateUpper(k), true
		}
	}
	return 0, false
}
