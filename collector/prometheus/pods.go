package prometheus

import (
	"encoding/json"
	"fmt"
)

// podSeries is one element of a vector whose series are of pods, each named by the label pod. The
// labels as text tell one container from the next one of its pod.
type podSeries struct {
	Labels json.RawMessage `json:"metric"`
	Value  *point          `json:"value"`
}

// maxCounters bounds the series that are remembered between answers.
const maxCounters = 20_000

// counters has the last value of each series of a counter, and the pods that have one.
type counters struct {
	last map[string]float64
	pods map[string]bool
}

// pods decodes an answer with series of pods, as one number of each pod: the largest, or of a counter
// by how much it rose since the answer before. A series that went back was reset, and counts from 0; so
// does a new one of a known pod, whose container was made since. One of a pod that was not known tells
// nothing of when it rose.
func (r *reply) pods(q *Query, c *counters) ([]number, error) {
	var all []podSeries
	if r.Data.Type != "vector" {
		return nil, &fault{kindType, "the result is no vector with a series of each pod"}
	}
	if err := json.Unmarshal(r.Data.Result, &all); err != nil {
		return nil, &fault{kindMalformed, clip(fmt.Sprintf("the answer cannot be read: %v", err))}
	}
	if len(all) == 0 {
		return nil, &fault{kindEmpty, "empty result"}
	}
	if c.last == nil || len(c.last) > maxCounters {
		*c = counters{map[string]float64{}, map[string]bool{}}
	}
	known := make(map[string]bool, len(c.pods))
	for pod := range c.pods {
		known[pod] = true
	}
	var out []number
	at := map[string]int{}
	for _, s := range all {
		var of struct {
			Pod string `json:"pod"`
		}
		if err := json.Unmarshal(s.Labels, &of); err != nil || of.Pod == "" || s.Value == nil {
			return nil, &fault{kindMalformed, "the answer has a series without a pod or without a value"}
		}
		i, ok := at[of.Pod]
		if !ok {
			if i = len(out); i >= maxNumbers {
				return nil, &fault{kindSeveral, fmt.Sprintf("more than %d pods", maxNumbers)}
			}
			at[of.Pod], out = i, append(out, number{place: place{instance: of.Pod}})
		}
		n := &out[i]
		v, bad := s.Value.value, s.Value.fault()
		switch before, seen := c.last[string(s.Labels)]; {
		case bad != nil:
			n.err = bad
			continue
		case !q.Counter:
			n.value = max(n.value, v)
		case !known[of.Pod]:
			n.err = &fault{kindEmpty, "first reading"}
		case seen && v >= before:
			n.value += v - before
		default:
			n.value += v
		}
		c.last[string(s.Labels)], c.pods[of.Pod] = v, true
	}
	for i := range out {
		if out[i].err != nil {
			out[i].value = 0
		}
	}
	return out, nil
}
