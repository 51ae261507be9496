package cilantro

import "github.com/trimtab/trimtab/analyzer/learn"

// drowsy is a learner that looks empty until the last report of a round, so
// that curves are made only where the planner looks at them: the planner keeps
// the latest estimate alone, and the figures stay the same to the bit.
type drowsy struct {
	learn.Learner
	awake *bool
}

// Reports is 0 while nobody looks: then no curve is made.
func (d drowsy) Reports() int {
	if !*d.awake {
		return 0
	}
	return d.Learner.Reports()
}

// Falls hands on what the learner says of its curve.
func (d drowsy) Falls() bool {
	f, ok := d.Learner.(learn.Falling)
	return ok && f.Falls()
}

// Bends hands on where the learner says that its curve bends.
func (d drowsy) Bends(load float64) []float64 {
	if b, ok := d.Learner.(learn.Bending); ok {
		return b.Bends(load)
	}
	return nil
}

// Changes hands on how many changes the learner saw.
func (d drowsy) Changes() int {
	if c, ok := d.Learner.(interface{ Changes() int }); ok {
		return c.Changes()
	}
	return 0
}
