package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/trimtab/trimtab/lab/services"
)

// refusing is the table of what was refused in an overload.
type refusing struct {
	s    *services.Scenario
	rows []string
}

func newRefusing(s *services.Scenario) *refusing { return &refusing{s: s} }

// row adds what a policy came to, the mean of its runs.
func (r *refusing) row(policy, signal string, runs []*services.Result) {
	cells := make([]float64, 1+2*len(r.s.Services)+2*services.ClassCount+2)
	first, never := 0.0, 0
	for _, run := range runs {
		a := r.s.Admitted(run)
		all := append([]float64{a.Goodput}, a.Services...)
		all = append(append(all, a.RefusedOf...), a.InTime[:]...)
		all = append(append(all, a.Refused[:]...), a.Before, a.After)
		for k, v := range all {
			cells[k] += v / float64(len(runs))
		}
		if first = max(first, a.First); a.First < 0 {
			never++
		}
	}
	out := fmt.Sprintf("%s\t%s\t%.3f", policy, signal, cells[0])
	for _, v := range cells[1:] {
		out += fmt.Sprintf("\t%.1f", 100*v)
	}
	last := fmt.Sprintf("%.0f ms", 1000*first)
	if never > 0 {
		last = "–"
	}
	r.rows = append(r.rows, out+"\t"+last)
}

// print prints the table.
func (r *refusing) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := "POLICY\tSIGNAL\tGOODPUT"
	for _, what := range []string{"IN TIME", "REFUSED"} {
		for i := range r.s.Services {
			head += "\t" + what + " " + strings.ToUpper(r.s.Services[i].Name)
		}
	}
	for _, what := range []string{"IN TIME", "REFUSED"} {
		for _, class := range services.Classes() {
			head += "\t" + what + " " + strings.ToUpper(class)
		}
	}
	fmt.Fprintln(w, "while needs do not fit, % of the requests; goodput over what the pool could do\n"+head+"\tREFUSED BEFORE\t5 S AFTER\tFIRST AFTER")
	for _, row := range r.rows {
		fmt.Fprintln(w, row)
	}
	fmt.Fprintln(w)
	return w.Flush()
}
