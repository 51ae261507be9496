package learn

// Falling is a Learner that can tell that more resource makes the performance
// worse. While Falls returns false, or for learners without it, curves are
// made non-decreasing.
type Falling interface {
	Falls() bool
}

// Reversioner is a Learner that can carry what it knows over to another
// version of the workload: Revise keeps the curve as a guess, with a wider
// band, and what is observed from then on outweighs it soon.
type Reversioner interface {
	Revise()
}

// Bending is a Learner that can tell where its curve bends under a load: the
// allocations, in any order. A curve that is read off there is the learner's
// own, steps included.
type Bending interface {
	Bends(load float64) []float64
}
