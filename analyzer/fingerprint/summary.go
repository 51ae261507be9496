package fingerprint

// Summary is the published part of a fingerprint: 128 bytes or less for a workload, however much
// it has seen.
type Summary struct {
	// At is the end of the last judged window, in Unix nanoseconds; 0: none yet.
	At        int64   `json:"at"`
	CPI       Brief   `json:"cpi"`
	MPKI      Brief   `json:"mpki"`
	Slowdown  float32 `json:"slowdown"`
	Anomaly   bool    `json:"anomaly"`
	FalseRate Rate    `json:"false_alarms"`
}

// Brief is one indicator in short.
type Brief struct {
	Value    float32 `json:"value"`
	Typical  float32 `json:"typical"`
	Boundary float32 `json:"boundary"`
	// Shape and Scale are those of the paper's fit, KS its distance; 0: none.
	Shape float32 `json:"shape"`
	Scale float32 `json:"scale"`
	KS    float32 `json:"ks"`
	// PaperRate and PhaseRate are the false-alarm rates of both models.
	PaperRate float32 `json:"paper_false_alarms"`
	PhaseRate float32 `json:"phases_false_alarms"`
	Windows   uint32  `json:"windows"`
	// Judge is what gave the boundary: 0 unknown, 1 phases, 2 the paper's fit.
	Judge uint8 `json:"judge"`
	Over  bool  `json:"over"`
}

// Summary returns the last judgement and the models in short.
func (w *Workload) Summary() Summary {
	j := &w.last
	out := Summary{CPI: w.cpi.brief(&j.CPI), MPKI: w.mpki.brief(&j.MPKI), Slowdown: float32(j.Slowdown), Anomaly: j.Anomaly, FalseRate: w.alarms}
	if !j.At.IsZero() {
		out.At = j.At.UnixNano()
	}
	return out
}

func (i *Indicator) brief(v *Verdict) Brief {
	b := Brief{Value: float32(v.Value), Typical: float32(v.Typical), Boundary: float32(v.Boundary), Over: v.Over}
	b.PaperRate, b.PhaseRate = float32(i.fit.FalseAlarms.Value()), float32(i.phaseAlarms.Value())
	b.Windows = uint32(min(i.moments.n, 1<<32-1))
	if i.fitted {
		d := i.fit.Distribution
		b.Shape, b.Scale, b.KS = float32(d.Shape), float32(d.Scale), float32(i.fit.KS)
	}
	switch v.Model {
	case Phases:
		b.Judge = 1
	case Model(i.family):
		b.Judge = 2
	}
	return b
}
