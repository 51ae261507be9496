package colocate

import (
	"math"
	"time"

	"github.com/trimtab/trimtab/planner/reclaim"
)

// predict sets what a job would lose: its useless and attained work always, its loss if that can be
// predicted. A job of which nothing is known would lose all its work.
func (c *measuredWork) predict(j *Job, step float64, silent time.Duration) {
	r := j.Has[cpu]
	if v, ok := j.Has[cores]; ok {
		r = v
	}
	if !(r >= 0 && r <= greatestAmount) {
		r = 0
	}
	p := c.last
	if p == nil {
		p = &Progress{}
	}
	elapsed := seconds(p.Elapsed, c.Ran)
	j.Attained = c.Attained
	j.Useless, _ = reclaim.Useless(seconds(p.SinceCheckpoint, elapsed), r, false, p.Replica)
	if c.last == nil || c.Back || c.silent > silent {
		return
	}
	share := 0.5
	if r > step {
		share = math.Max(share, (r-step)/r)
	}
	before, ok1 := makespan(p, elapsed, 1)
	after, ok2 := makespan(p, elapsed, share)
	loss, ok3 := reclaim.Loss(after, r*share, before, r)
	if ok1 && ok2 && ok3 {
		j.Loss, j.Predictable = loss, true
	}
}

// makespan returns the total running time of the job if it has only a share of its resources from
// now on: the share that one cut leaves, at least half.
func makespan(p *Progress, elapsed, share float64) (float64, bool) {
	switch p.Predict {
	case PredictDataParallel:
		return reclaim.DataParallel(elapsed, known(p.Done), share)
	case PredictTraining:
		return reclaim.Training(elapsed, known(p.Remaining), known(p.Rate)*share)
	}
	return 0, false
}
