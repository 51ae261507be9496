package calc

import (
	"fmt"
	"io"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/reclaim"
)

// mlrqInput is what [MLRQ] reads.
type mlrqInput struct {
	Predictable []struct {
		ID       string  `json:"id"`
		L        float64 `json:"L"`
		U        float64 `json:"U"`
		Attained float64 `json:"attained"`
	} `json:"predictable"`
	Unpredictable []struct {
		ID       string  `json:"id"`
		U        float64 `json:"U"`
		Attained float64 `json:"attained"`
	} `json:"unpredictable"`
	Contributions []float64  `json:"contributions,omitempty"`
	Servers       [][]string `json:"servers,omitempty"`
	Rounding      string     `json:"rounding,omitempty"`
}

// mlrqOutput is what [MLRQ] answers.
type mlrqOutput struct {
	Scores map[string]int `json:"scores"`
	Queue  []string       `json:"queue"`
	Sizes  []int          `json:"level_size"`
	MLRQ   [][][]string   `json:"mlrq"`
}

// MLRQ orders best-effort jobs for reclamation and cuts the order into levels:
//
//	in:  {"predictable": [{"id", "L", "U", "attained"}],
//	      "unpredictable": [{"id", "U", "attained"}], "contributions": [C_i],
//	      "servers": [[ids]], "rounding": "nearest"|"floor"|"ceil"}
//	out: {"scores": {id: n}, "queue": [ids], "level_size": [q_i],
//	      "mlrq": [[[ids of the top level], …] for each server]}
//
// The last three may be left out; servers without contributions count the
// same. See package reclaim.
func MLRQ(r io.Reader) (any, error) {
	var in mlrqInput
	if err := Decode(r, &in); err != nil {
		return nil, err
	}
	var p, u []reclaim.Job
	for _, j := range in.Predictable {
		p = append(p, reclaim.Job{ID: j.ID, Loss: j.L, Useless: j.U, Attained: j.Attained})
	}
	for _, j := range in.Unpredictable {
		u = append(u, reclaim.Job{ID: j.ID, Useless: j.U, Attained: j.Attained})
	}
	queue, err := reclaim.Queue(p, u)
	if err != nil {
		return nil, err
	}
	out := mlrqOutput{Scores: make(map[string]int, len(queue)), Queue: make([]string, 0, len(queue))}
	for _, j := range queue {
		out.Scores[j.ID] = j.Score
		out.Queue = append(out.Queue, j.ID)
	}
	return out, out.levels(&in, queue)
}

// levels fills in what each server reclaims at a time.
func (out *mlrqOutput) levels(in *mlrqInput, queue []reclaim.Scored) error {
	if in.Contributions == nil {
		in.Contributions = make([]float64, len(in.Servers))
	}
	if in.Servers != nil && len(in.Servers) != len(in.Contributions) {
		return trimtab.Invalidf("%d servers, %d contributions: want one of each server", len(in.Servers), len(in.Contributions))
	}
	var err error
	if out.Sizes, err = reclaim.Sizes(len(queue), in.Contributions, reclaim.Rounding(in.Rounding)); err != nil {
		return err
	}
	out.MLRQ = make([][][]string, len(in.Servers))
	for i, ids := range in.Servers {
		here := make(map[string]bool, len(ids))
		for _, id := range ids {
			if _, known := out.Scores[id]; !known || here[id] {
				return fmt.Errorf("server %d: %w", i, trimtab.Invalidf("job %.60q: want one of the jobs, once", id))
			}
			here[id] = true
		}
		if out.MLRQ[i] = reclaim.Levels(queue, here, out.Sizes[i]); out.MLRQ[i] == nil {
			out.MLRQ[i] = [][]string{}
		}
	}
	return nil
}
