package machines

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Count is how many tasks of one job failed, crashed, straggled or were killed
// on one machine.
type Count struct {
	// Machine is a position in the list.
	Machine uint32
	// Tasks is >= 0.
	Tasks int
}

// Scores returns the scores of n machines by the counts of all jobs (Algorithm 3): for each job
// the top highest counts, negated and summed. Counts of 0 are no penalty; ties go to the machine
// that comes first. It panics if a machine is not below n.
func Scores(n int, jobs [][]Count, top int) []int64 {
	scores := make([]int64, n)
	for _, counts := range jobs {
		for _, c := range worst(counts, top) {
			scores[c.Machine] -= int64(c.Tasks)
		}
	}
	return scores
}

// worst returns the top highest counts: highest first, ties by position.
func worst(counts []Count, top int) []Count {
	some := slices.DeleteFunc(slices.Clone(counts), func(c Count) bool { return c.Tasks <= 0 })
	slices.SortFunc(some, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(a.Machine, b.Machine))
	})
	return some[:min(max(top, 0), len(some))]
}

// MostPenalised bounds the K of a job in [Index.Rate].
const MostPenalised = 8

// gone marks a machine that left the list.
const gone = math.MaxUint32

// ratings are the penalties of each job, so that a job's newer counts replace its older ones, and
// end with the period.
type ratings struct {
	at   map[uint64]uint32 // by the hash of the job's name
	jobs []rating
}

// rating is one job's: 64 bytes.
type rating struct {
	job      uint64
	rated    int64 // Unix nanoseconds
	machines [MostPenalised]uint32
	tasks    [MostPenalised]uint16 // 0: none
}

func newRatings() ratings { return ratings{at: map[uint64]uint32{}} }

// hash identifies a job by 8 bytes, whose collisions cannot be chosen.
func hash(job string) uint64 {
	sum := sha256.Sum256([]byte(job))
	return binary.LittleEndian.Uint64(sum[:])
}

// Rate applies the counts that a job manager sent at now: all counts of the job, not the new
// ones, so that a repeated message counts once. The top highest (at most [MostPenalised]) count,
// each at most 65,535, from now on for [Config.RatingPeriod]. Counts of a machine that is not in
// the list, or twice in them, are refused.
func (x *Index[F]) Rate(now time.Time, job string, counts []Count, top int) error {
	at, ok := nanoseconds(now)
	if !ok || top < 0 || top > MostPenalised {
		return trimtab.Invalidf("rate machines: job %.60q: at %v, the %d highest: want 0 to %d", job, now, top, MostPenalised)
	}
	seen := make(map[uint32]bool, len(counts))
	for _, c := range counts {
		if int(c.Machine) >= len(x.columns.ids) || seen[c.Machine] || c.Tasks < 0 {
			return trimtab.Invalidf("rate machines: job %.60q: %d tasks on machine %d: want machines of the list, once, and tasks >= 0", job, c.Tasks, c.Machine)
		}
		seen[c.Machine] = true
	}
	r := rating{job: hash(job), rated: at}
	for i, c := range worst(counts, top) {
		r.machines[i], r.tasks[i] = c.Machine, uint16(min(c.Tasks, math.MaxUint16))
	}
	i, known := x.ratings.at[r.job]
	if !known {
		if len(x.ratings.jobs) >= gone {
			return fmt.Errorf("rate machines: %d jobs: %w", len(x.ratings.jobs), trimtab.ErrRefused)
		}
		i = uint32(len(x.ratings.jobs))
		x.ratings.at[r.job] = i
		x.ratings.jobs = append(x.ratings.jobs, rating{})
	}
	x.charge(&x.ratings.jobs[i], +1)
	x.ratings.jobs[i] = r
	x.charge(&r, -1)
	return nil
}

// charge adds sign times a job's counts to the scores.
func (x *Index[F]) charge(r *rating, sign int64) {
	for i, m := range r.machines {
		if r.tasks[i] > 0 && m != gone {
			x.columns.score[m] += sign * int64(r.tasks[i])
		}
	}
}

// Forgive removes the penalties of jobs whose period has ended.
func (x *Index[F]) Forgive(now time.Time) {
	at, ok := nanoseconds(now)
	if !ok || x.config.RatingPeriod == 0 {
		return
	}
	jobs := x.ratings.jobs
	for i := 0; i < len(jobs); {
		r := &jobs[i]
		if at-r.rated <= int64(x.config.RatingPeriod) {
			i++
			continue
		}
		x.charge(r, +1)
		delete(x.ratings.at, r.job)
		last := len(jobs) - 1
		if i != last {
			jobs[i] = jobs[last]
			x.ratings.at[jobs[i].job] = uint32(i)
		}
		jobs = jobs[:last]
	}
	x.ratings.jobs = jobs
}

// move follows the machines to their new positions.
func (r *ratings) move(to []uint32) {
	for j := range r.jobs {
		for i, m := range r.jobs[j].machines {
			if r.jobs[j].tasks[i] > 0 && m != gone {
				r.jobs[j].machines[i] = to[m]
			}
		}
	}
}

// SetScores replaces all scores, as by [Scores]; it panics if there is not one for each machine.
// Later calls of [Index.Rate] add to them.
func (x *Index[F]) SetScores(scores []int64) {
	if len(scores) != len(x.columns.ids) {
		panic(fmt.Sprintf("machines: %d scores for %d machines", len(scores), len(x.columns.ids)))
	}
	copy(x.columns.score, scores)
}
