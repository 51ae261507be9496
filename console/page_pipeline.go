package console

import (
	"maps"
	"net/http"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

// flow is the data of pipeline.html.
type flow struct {
	Frame frame
	view.Pipeline
	// Waiting and Redelivered are over all stages; Lag is the age of the
	// oldest value that waits, as text.
	Waiting, Redelivered uint64
	Lag                  string
	// Shown are the first of the inputs that are missing.
	Shown  []view.MissingInput
	Losses []loss
}

// loss counts the values of one kind that went no further.
type loss struct {
	Kind                    string
	Shed, Unreadable, Aside uint64
}

func (s *site) drawPipeline(w http.ResponseWriter, r *http.Request) {
	f := flow{Frame: s.frame(r, "pipeline", "Pipeline", "/api/v1/pipeline"), Pipeline: s.pipelineState(r.Context())}
	var oldest trimtab.Seconds
	for _, stage := range f.Stages {
		f.Waiting += stage.Waiting
		f.Redelivered += stage.Redelivered
		oldest = max(oldest, lag(stage))
	}
	if oldest > 0 {
		f.Lag = "for " + view.Age(oldest)
	}
	inputs, _ := f.Frame.Sorted("missing", f.Inputs).([]view.MissingInput)
	f.Shown = inputs[:min(len(inputs), shownInputs)]
	f.Losses = losses(&f.Pipeline)
	s.render(w, http.StatusOK, "pipeline.html", &f)
}

// lag returns the age of the oldest value that waits for a stage; 0: none waits.
func lag(s view.StageState) (oldest trimtab.Seconds) {
	for _, q := range s.Queues {
		if q.Lag != nil {
			oldest = max(oldest, *q.Lag)
		}
	}
	return oldest
}

// losses gathers the counts by kind, in order.
func losses(p *view.Pipeline) (out []loss) {
	kinds := map[string]bool{}
	for _, of := range []map[string]uint64{p.Shed, p.Unreadable, p.Aside} {
		for k := range of {
			kinds[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		out = append(out, loss{k, p.Shed[k], p.Unreadable[k], p.Aside[k]})
	}
	return out
}
