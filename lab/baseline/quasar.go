package baseline

import "math"

// quasar completes a matrix of performance over jobs and classes of
// allocation per load, from all jobs together, and demands the least
// allocation whose entry meets the SLO.
//
// Entries are p/SLO, the mean of what was seen. The matrix is factored into
// rank 2 by alternating least squares with a ridge; a workload type's jobs
// pull towards each other, as Quasar classifies by what it has seen before.
type quasar struct {
	rows  map[string]*row
	names []string
	side  [classes][rank]float64
	ready bool
}

const (
	rank, rounds, ridge = 2, 20, 0.1
	// enough of the SLO counts as meeting it: the ridge shrinks entries.
	enough = 0.97
	// classes of a/l, the same ratio apart from least on.
	classes, least, ratio = 24, 0.02, 1.5
)

// row is one job: sums of what was seen in each class, and its factors.
type row struct {
	sum, count [classes]float64
	kind       string
	factors    [rank]float64
}

// Name returns "quasar".
func (*quasar) Name() string { return "quasar" }

func classOf(x float64) int {
	return min(max(int(math.Round(math.Log(x/least)/math.Log(ratio))), 0), classes-1)
}

// Next learns from all jobs, then shares by their demands.
func (q *quasar) Next(units int, jobs []Job) ([]int, error) {
	for i := range jobs {
		j := &jobs[i]
		r := q.rows[j.Name]
		if r == nil {
			r = &row{kind: j.Type, factors: [rank]float64{1, 0.1 * float64(len(q.names)%5)}}
			q.rows[j.Name] = r
			q.names = append(q.names, j.Name)
		}
		if j.Units > 0 && j.Load > 0 {
			c := classOf(float64(j.Units) / j.Load)
			r.sum[c] += j.Performance / j.SLO
			r.count[c]++
		}
	}
	q.complete()
	wants := make([]float64, len(jobs))
	for i := range jobs {
		wants[i] = q.demand(&jobs[i])
	}
	return share(units, jobs, wants)
}

// complete factors the matrix.
func (q *quasar) complete() {
	if !q.ready {
		for c := range q.side {
			q.side[c] = [rank]float64{float64(c+1) / classes, 1}
		}
		q.ready = true
	}
	for range rounds {
		for _, name := range q.names {
			r := q.rows[name]
			var s normal
			for c := range classes {
				if r.count[c] > 0 {
					s.add(q.side[c], r.sum[c]/r.count[c])
				}
			}
			r.factors = s.solve(q.prior(r))
		}
		for c := range q.side {
			var s normal
			for _, name := range q.names {
				if r := q.rows[name]; r.count[c] > 0 {
					s.add(r.factors, r.sum[c]/r.count[c])
				}
			}
			q.side[c] = s.solve(q.side[c])
		}
	}
}

// prior is the mean of the factors of the jobs of the same type.
func (q *quasar) prior(r *row) (mean [rank]float64) {
	n := 0.0
	for _, name := range q.names {
		if o := q.rows[name]; o.kind == r.kind {
			n++
			for i := range mean {
				mean[i] += o.factors[i]
			}
		}
	}
	for i := range mean {
		mean[i] /= n
	}
	return mean
}

func (q *quasar) demand(j *Job) float64 {
	r := q.rows[j.Name]
	for c := range classes {
		v := 0.0
		for i := range r.factors {
			v += r.factors[i] * q.side[c][i]
		}
		if r.count[c] > 0 {
			v = r.sum[c] / r.count[c]
		}
		if v >= enough {
			return math.Ceil(least * math.Pow(ratio, float64(c)) * j.Load)
		}
	}
	return float64(j.Max)
}

// normal is a ridge regression of rank unknowns.
type normal struct {
	gram  [rank][rank]float64
	right [rank]float64
}

func (s *normal) add(x [rank]float64, y float64) {
	for i := range x {
		s.right[i] += x[i] * y
		for k := range x {
			s.gram[i][k] += x[i] * x[k]
		}
	}
}

// solve returns the coefficients, pulled towards prior by the ridge.
func (s *normal) solve(prior [rank]float64) [rank]float64 {
	a, b, d := s.gram[0][0]+ridge, s.gram[0][1], s.gram[1][1]+ridge
	y0, y1 := s.right[0]+ridge*prior[0], s.right[1]+ridge*prior[1]
	det := a*d - b*b
	return [rank]float64{(d*y0 - b*y1) / det, (a*y1 - b*y0) / det}
}
