package conformal

// Model is a point forecast on the root scale. Implementations are deterministic, hold bounded
// memory and never fail: without enough data they are not [Model.Ready].
type Model interface {
	// Name is told as the model of the forecasts that it makes.
	Name() string
	// See reads the latest report, the last of recent; before it are the earlier reports, at most
	// 1024 in all.
	See(recent []float64)
	// Skip says that n reports are missing.
	Skip(n int)
	// Ready reports whether Path may be asked for.
	Ready() bool
	// Path returns the highest and the mean of the expected next h reports.
	Path(h int) (high, mean float64)
	// Clone returns a copy that goes its own way.
	Clone() Model
	// State returns all that a snapshot holds, to write and read as JSON; Check returns an error
	// if what was read cannot be the model's own.
	State() any
	Check() error
}

// naive predicts that everything stays as it is now.
type naive struct {
	Now  float64 `json:"now"`
	Seen bool    `json:"seen"`
}

// Naive is the forecast that every other is measured by: as now.
func Naive() Model { return &naive{} }

func (n *naive) Name() string                  { return "naive" }
func (n *naive) See(recent []float64)          { n.Now, n.Seen = recent[len(recent)-1], true }
func (n *naive) Skip(int)                      {}
func (n *naive) Ready() bool                   { return n.Seen }
func (n *naive) Path(int) (high, mean float64) { return n.Now, n.Now }
func (n *naive) Clone() Model                  { c := *n; return &c }
func (n *naive) State() any                    { return n }
func (n *naive) Check() error                  { return nil }
