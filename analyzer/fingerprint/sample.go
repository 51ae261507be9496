package fingerprint

import (
	"time"

	"github.com/trimtab/trimtab"
)

// Reading is a number that may be missing: the zero Reading was not counted.
type Reading struct {
	Value   float64
	Counted bool
}

// Counted returns a reading.
func Counted(v float64) Reading { return Reading{v, true} }

// Sample is the hardware counters of one workload on one host over an interval.
type Sample struct {
	// Length is that of the interval: over 0, at most [Longest].
	Length time.Duration
	// CPI is cycles per instruction, at least 0.001. Where nothing ran it is not counted.
	CPI Reading
	// MPKI is misses of the shared cache per 1000 instructions, at least 0.
	MPKI Reading
	// References is accesses to the shared cache per 1000 instructions, at least 0: misses of a
	// core's own caches. Neighbours do not change it, phases of the program do, so it
	// distinguishes phases.
	References Reading
	// Cores is the CPU time used, in cores, at least 0.
	Cores Reading
}

// Longest is the longest interval of a [Sample].
const Longest = time.Minute

// greatestReading is larger than any that can be.
const greatestReading = 1e6

// validate stops what cannot be.
func (s *Sample) validate() error {
	if s.Length <= 0 || s.Length > Longest {
		return trimtab.Invalidf("sample of %v: want more than 0 and at most %v", s.Length, Longest)
	}
	for _, q := range []struct {
		name string
		Reading
		least float64
	}{{"CPI", s.CPI, resolution}, {"MPKI", s.MPKI, 0}, {"references", s.References, 0}, {"cores", s.Cores, 0}} {
		if q.Counted && !(q.Value >= q.least && q.Value <= greatestReading) {
			return trimtab.Invalidf("%s %v: want %g to %g", q.name, q.Value, q.least, greatestReading)
		}
	}
	return nil
}

// window accumulates samples. Ratios are weighted by their denominators: with w = cores · length
// for cycles, instructions are w / CPI.
type window struct {
	length, cycles, instructions, misses, references, seconds float64
	// of are the intervals in it, and of how many each was counted.
	of, cores, missed, referred int
}

// add adds a sample whose CPI was counted.
func (w *window) add(s Sample) {
	length := s.Length.Seconds()
	cycles := length
	if s.Cores.Counted {
		cycles *= s.Cores.Value
		w.seconds += cycles
		w.cores++
	}
	instructions := cycles / s.CPI.Value
	w.of++
	w.length += length
	w.cycles += cycles
	w.instructions += instructions
	if s.MPKI.Counted {
		w.misses += s.MPKI.Value * instructions
		w.missed++
	}
	if s.References.Counted {
		w.references += s.References.Value * instructions
		w.referred++
	}
}

// means returns the window as one sample: what was not counted in all of its
// intervals is missing.
func (w *window) means() (s Sample, ok bool) {
	if w.instructions <= 0 || w.cores != 0 && w.cores != w.of {
		return Sample{}, false
	}
	s = Sample{Length: time.Duration(w.length * float64(time.Second)), CPI: Counted(w.cycles / w.instructions)}
	if w.missed == w.of {
		s.MPKI = Counted(w.misses / w.instructions)
	}
	if w.referred == w.of {
		s.References = Counted(w.references / w.instructions)
	}
	if w.cores == w.of {
		s.Cores = Counted(w.seconds / w.length)
	}
	return s, true
}
