package colocate

import "math"

// The frequency subcontroller slows jobs down while the package draws more than the fraction hot of
// its power limit and a Servpod's cores run below their least clock. It speeds jobs up again below
// the fraction cool.
const (
	hot, cool = 0.80, 0.75
	notch     = 100 // MHz
)

// frequency lowers the clock of jobs, or raises it if rises is true.
func (r *round) frequency(rises bool) {
	pw := r.o.Power
	if pw == nil || !(pw.Draws >= 0) || !(pw.TDP > 0) || !finite(pw.Draws) || !finite(pw.TDP) {
		return
	}
	slow := false
	for i := range r.o.Services {
		s := &r.o.Services[i]
		slow = slow || s.Frequency > 0 && s.Frequency < s.LeastFrequency
	}
	top := known(ptr(r.o.Capacity, frequency))
	for i := range r.allocations {
		s := &r.allocations[i]
		if math.IsNaN(s.before) || !s.runs() || s.act == Start {
			continue
		}
		switch {
		case top >= notch && s.before > top:
			s.after = top
		case pw.Draws > hot*pw.TDP && slow:
			least := math.Max(notch, zero(known(ptr(s.job.Least, frequency))))
			s.after = math.Min(s.before, math.Max(least, s.before-notch))
		case pw.Draws < cool*pw.TDP && !slow && rises && top > 0:
			s.after = math.Max(s.before, math.Min(math.Min(top, most(s, frequency)), s.before+notch))
		}
	}
}

// ptr returns an amount as a pointer, nil if it is missing.
func ptr(a Amounts, name string) *float64 {
	v, ok := a[name]
	if !ok {
		return nil
	}
	return &v
}

// slowest returns the clock of the slowest job, or the capacity's if no job's is known.
func (r *round) slowest() float64 {
	v := known(ptr(r.o.Capacity, frequency))
	if !(v > 0 && v <= greatestAmount) {
		v = math.NaN()
	}
	for i := range r.allocations {
		if s := &r.allocations[i]; s.before < v || math.IsNaN(v) {
			v = s.before
		}
	}
	return v
}

// linkShare returns the bandwidth that jobs may use of a link: B_link − 1.2 B_LC, at most capacity.
func linkShare(l *Link, capacity float64) float64 {
	v := l.Bandwidth - 1.2*l.Used
	if !finite(v) {
		return 0
	}
	return math.Max(0, math.Min(capacity, v))
}

// network divides the jobs' part of the link evenly among those that run. A job above its part is
// lowered at once if others get too little. A job below it is raised while growth is allowed, if by
// more than a tenth.
func (r *round) network(rises bool) {
	k := index(r.names, network)
	if k < 0 {
		return
	}
	n, all := 0, 0.0
	for i := range r.allocations {
		if r.gets(i, k) {
			n++
		}
	}
	if n == 0 {
		return
	}
	share := math.Floor(r.capacity[k] / float64(n))
	for i := range r.allocations {
		if r.gets(i, k) {
			all += math.Max(r.allocations[i].to[k], r.least(i, share))
		}
	}
	for i := range r.allocations {
		if r.gets(i, k) && r.allocations[i].to[k] > share && all > r.capacity[k] {
			r.set(i, k, share)
		}
	}
	for i := range r.allocations {
		s := &r.allocations[i]
		fresh := s.act == Start || s.act == Resume
		if r.gets(i, k) && (fresh || rises && s.to[k] < 0.9*share) {
			if v := math.Min(share, most(s, network)); v > s.to[k] && v-s.to[k] <= r.free(k) {
				r.set(i, k, v)
			}
		}
	}
}

// gets reports whether a job runs and its bandwidth can be set.
func (r *round) gets(i, k int) bool {
	return r.allocations[i].runs() && !math.IsNaN(r.allocations[i].to[k])
}

// least returns the bandwidth that must be free for a job that starts or resumes.
func (r *round) least(i int, share float64) float64 {
	if a := r.allocations[i].act; a == Start || a == Resume {
		return share
	}
	return 0
}

func index(names []string, name string) int {
	for k := range names {
		if names[k] == name {
			return k
		}
	}
	return -1
}
