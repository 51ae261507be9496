package path

import "math/bits"

// lateness is a histogram of how late spans arrived, with four classes per octave from 16.8 ms to
// 69 s. Shorter times count in the first class, longer ones in the last.
type lateness [lateClasses]uint16

const (
	lateClasses = 48
	// leastLate is the logarithm of the upper end of the first class, in ns.
	leastLate = 24
	// tail is the fraction of spans that may be later than quantile.
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

// fade halves the counts, so that old spans weigh less.
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

// quantile returns the lateness, in ns, that all but the fraction [tail] of spans stay below;
// false: no span was counted.
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
