// Package reclaim orders best-effort jobs by how little is lost when their
// resources are taken back, and cuts the order into levels.
//
// Of J jobs in a sequence, the one of rank r (the least loss has rank 1) gets
// J − r points (Borda count). A job whose loss can be predicted is in the
// sequence of losses L and in that of useless computation U, among its like,
// and has the sum of both; one that cannot be predicted is only in a sequence
// by U, among its like, and its points are doubled:
//
//	score = (J_p − r_L) + (J_p − r_U)    predictable              (8)
//	score = 2 (J_u − r_U)                unpredictable            (9)
//	q_i   = n_BE C_i / Σ C               jobs of a level on i    (10)
//
// The highest score is reclaimed first, and a level at a time.
//
// Source: Zhao et al., Rhythm, ACM TOCS 2023, section 3.6, equations (1) and
// (7) to (10). Ties in L go by U, attained service and name, ties in U by attained
// service (less first) and name, ties in the score by U, attained service and
// name.
//
// What a job loses is predicted by (1) and (7) and by the makespans of section 3.6,
// from what it told of itself; what makes no sense predicts nothing. The package
// takes nothing from anybody.
//
//	queue, err := reclaim.Queue(predictable, unpredictable)
//	top := reclaim.Levels(queue, onThisHost, size)[0]
package reclaim

import (
	"cmp"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
)

// Job is one best-effort job.
type Job struct {
	ID string
	// Loss is the preemption loss L, of predictable jobs only: seconds x
	// resources; over 0: something is lost.
	Loss float64
	// Useless is the computation that would be done again, U, >= 0.
	Useless float64
	// Attained is what the job was given so far, >= 0.
	Attained float64
}

// Scored is a job with its score.
type Scored struct {
	Job
	Score int
}

// byUse is the order in the sequence of useless computation.
func byUse(a, b *Job) int {
	switch {
	case a.Useless != b.Useless:
		return cmp.Compare(a.Useless, b.Useless)
	case a.Attained != b.Attained:
		return cmp.Compare(a.Attained, b.Attained)
	}
	return cmp.Compare(a.ID, b.ID)
}

// byLoss is the order in the sequence of losses.
func byLoss(a, b *Job) int {
	if a.Loss != b.Loss {
		return cmp.Compare(a.Loss, b.Loss)
	}
	return byUse(a, b)
}

// count adds the points of one sequence, multiplied by times, to score; places are the indices of
// its jobs, which it sorts into the sequence.
func count(jobs []Job, places []int, order func(a, b *Job) int, times int, score []int) {
	slices.SortFunc(places, func(a, b int) int { return cmp.Or(order(&jobs[a], &jobs[b]), cmp.Compare(a, b)) })
	for rank, at := range places {
		score[at] += times * (len(places) - 1 - rank)
	}
}

// Rank returns the indices of the jobs in the order in which they are reclaimed, and their
// scores, by index. Jobs before predictable have a Loss. No number is NaN; of jobs that are equal
// in everything, also the name, the first comes first.
func Rank(jobs []Job, predictable int) (order, scores []int) {
	order, scores = make([]int, len(jobs)), make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	count(jobs, order[:predictable], byLoss, 1, scores)
	count(jobs, order[:predictable], byUse, 1, scores)
	count(jobs, order[predictable:], byUse, 2, scores)
	slices.SortFunc(order, func(a, b int) int {
		if scores[a] != scores[b] {
			return cmp.Compare(scores[b], scores[a])
		}
		return cmp.Or(byUse(&jobs[a], &jobs[b]), cmp.Compare(a, b))
	})
	return order, scores
}

// Queue returns all jobs, the one to be reclaimed first at the front. Its
// errors are trimtab.ErrInvalid.
func Queue(predictable, unpredictable []Job) ([]Scored, error) {
	all := slices.Concat(predictable, unpredictable)
	seen := make(map[string]bool, len(all))
	for _, j := range all {
		switch {
		case j.ID == "" || seen[j.ID]:
			return nil, trimtab.Invalidf("job %.60q: want a name of its own", j.ID)
		case !(j.Useless >= 0) || !(j.Attained >= 0) || math.IsNaN(j.Loss):
			return nil, trimtab.Invalidf("job %.60q: U %v, attained %v: want >= 0", j.ID, j.Useless, j.Attained)
		}
		seen[j.ID] = true
	}
	order, scores := Rank(all, len(predictable))
	queue := make([]Scored, len(all))
	for n, i := range order {
		queue[n] = Scored{all[i], scores[i]}
	}
	return queue, nil
}

// Rounding makes a whole number of the size of a level.
type Rounding string

// The roundings. "" is Nearest, which is floor(q + 1/2).
const (
	Nearest Rounding = "nearest"
	Floor   Rounding = "floor"
	Ceil    Rounding = "ceil"
)

// Sizes returns how many jobs a level has beside each component, by the contributions, of n jobs
// in all: at least 1, and at most n. If the contributions sum to 0, all components count equally.
func Sizes(n int, contributions []float64, r Rounding) ([]int, error) {
	sum := 0.0
	for i, c := range contributions {
		if math.Abs(c) > 1e100 || math.IsNaN(c) {
			return nil, trimtab.Invalidf("contribution %d: %v: want -1e100 to 1e100", i, c)
		}
		sum += c
	}
	sizes := make([]int, len(contributions))
	for i, c := range contributions {
		q := float64(n) / float64(len(contributions))
		if sum != 0 {
			q = float64(n) * (c / sum)
		}
		switch r {
		case "", Nearest:
			q = math.Floor(q + 0.5)
		case Floor:
			q = math.Floor(q)
		case Ceil:
			q = math.Ceil(q)
		default:
			return nil, trimtab.Invalidf("rounding %.40q: want %s, %s or %s", r, Nearest, Floor, Ceil)
		}
		sizes[i] = int(max(1, min(q, float64(max(n, 1)))))
	}
	return sizes, nil
}

// Levels cuts the jobs of the queue that run here into levels of a size >= 1,
// the first to be reclaimed first. Jobs that do not run here are passed over.
func Levels(queue []Scored, here map[string]bool, size int) [][]string {
	var ids []string
	for _, j := range queue {
		if here[j.ID] {
			ids = append(ids, j.ID)
		}
	}
	return slices.Collect(slices.Chunk(ids, max(1, size)))
}
