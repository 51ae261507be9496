package view

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

// Document is a text for people, of which text, Markdown and HTML are made.
type Document struct {
	Title    string
	Lead     []string
	Sections []Section
}

// Section is a part of a document: sentences, then a table, either of which may be
// missing.
type Section struct {
	Title string
	Text  []string
	Head  []string
	Rows  [][]string
}

// Document is the report for people.
func (r *Report) Document() Document {
	d := Document{Title: "Report on pool " + r.Pool, Lead: []string{
		fmt.Sprintf("%s to %s, objective %s.", stamp(r.From), stamp(r.To), r.Objective), r.Total.measured(), r.Total.compared(r.Resource)}}
	if q := r.Total.Requests; q != nil {
		d.Lead = append(d.Lead, q.text())
	}
	if r.Exceeds != "" {
		d.Lead = append(d.Lead, "Now "+r.Exceeds+".")
	}
	d.Sections = append(d.Sections, r.workloads())
	if r.Total.Requests != nil {
		d.Sections = append(d.Sections, r.shed())
	}
	if money, ok := r.money(); ok {
		d.Sections = append(d.Sections, money)
	}
	if memory, ok := r.memory(); ok {
		d.Sections = append(d.Sections, memory)
	}
	if held, ok := r.others(); ok {
		d.Sections = append(d.Sections, held)
	}
	d.Sections = append(d.Sections, moved("Moves by outcome", "No move was decided.", r.Moves),
		moved("Moves by verdict", "No move was judged.", r.Verdicts), r.incidents(), Section{Title: "What is missing", Text: r.Missing})
	return d
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// measured says how long SLOs were met.
func (w *Worth) measured() string {
	if w.Minutes == 0 {
		return "No performance is known."
	}
	return fmt.Sprintf("SLOs were met in %s of %s workload minutes (%s).", Number(w.SLOMinutes), Number(w.Minutes), Percent(w.SLOMinutes/w.Minutes))
}

// compared says what the workload would have had at the baseline.
func (w *Worth) compared(resource string) string {
	c := w.Compared
	if c == nil || c.Minutes == 0 {
		return "Nothing can be compared with the limits from before trimtab."
	}
	return fmt.Sprintf("By the learnt curves, SLOs were met in %s of %s minutes with what workloads had, and would have been in %s with the limits from before trimtab: %s SLO minutes gained (%s to %s), with %s instead of %s %s.",
		Number(c.Had.SLOMinutes.Mean), Number(c.Minutes), Number(c.Baseline.SLOMinutes.Mean), signed(c.Gain.Mean), signed(c.Gain.Lower), signed(c.Gain.Upper),
		Number(c.Had.Hours), Number(c.Baseline.Hours), hoursOf(resource))
}

// hoursOf is the unit of an amount times a time: "core-hours".
func hoursOf(resource string) string {
	if unit := Unit(resource); unit == "cores" || unit == "workers" {
		return unit[:len(unit)-1] + "-hours"
	}
	return Unit(resource) + " hours"
}

// signed prints a difference with its sign.
func signed(v float64) string {
	if v > 0 {
		return "+" + Number(v)
	}
	return Number(v)
}

func (r *Report) workloads() Section {
	s := Section{Title: "Workloads", Head: []string{"Workload", "Mode", "SLO", "Minutes known", "SLO met", "Gained SLO minutes (band)", hoursOf(r.Resource), "At baseline", "Budget left", "Decisions"}}
	for i := range r.Workloads {
		w := &r.Workloads[i]
		row := []string{w.Workload, string(w.Mode), w.SLO, Number(w.Minutes), Missing, Missing, Missing, Missing, w.Budget.LeftText(), fmt.Sprint(w.Decisions)}
		if w.Minutes > 0 {
			row[4] = Percent(w.SLOMinutes / w.Minutes)
		}
		if w.KnownHours > 0 {
			row[6] = Number(w.Hours)
		}
		if c := w.Compared; c != nil && c.Minutes > 0 {
			row[5] = fmt.Sprintf("%s (%s to %s)", signed(c.Gain.Mean), signed(c.Gain.Lower), signed(c.Gain.Upper))
			row[6], row[7] = Number(c.Had.Hours), Number(c.Baseline.Hours)
		}
		s.Rows = append(s.Rows, row)
	}
	if len(s.Rows) == 0 {
		s.Text = []string{"No workload is planned for."}
	}
	return s
}

// text says how many requests gates refused, and which share was in time with and without them.
func (r *Requests) text() string {
	text := fmt.Sprintf("Gates refused %s requests", Number(math.Round(r.Total())))
	if r.OfAll != nil && r.OfAnswered != nil {
		text += fmt.Sprintf(": of all requests to their workloads %s were in time, of the answered ones %s", Percent(*r.OfAll), Percent(*r.OfAnswered))
	}
	return text + "."
}

// shed lists, for each workload, the requests that gates refused, and those in time.
func (r *Report) shed() Section {
	s := Section{Title: "Requests refused by gates", Head: []string{"Workload", "Requests", "Refused", "By class", "In time, of all", "In time, of the answered"}}
	for i := range r.Workloads {
		q := r.Workloads[i].Requests
		if q == nil {
			continue
		}
		row := []string{r.Workloads[i].Workload, Missing, Number(math.Round(q.Total())), q.classes(), Missing, Missing}
		if q.OfAll != nil {
			row[1], row[4] = Number(math.Round(q.Came)), Percent(*q.OfAll)
		}
		if q.OfAnswered != nil {
			row[5] = Percent(*q.OfAnswered)
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

func moved(title, none string, counts []Counted) Section {
	s := Section{Title: title, Head: []string{"What came of it", "Moves"}}
	for _, c := range counts {
		s.Rows = append(s.Rows, []string{c.What, fmt.Sprint(c.Count)})
	}
	if len(counts) == 0 {
		s.Text = []string{none}
	}
	return s
}

func (r *Report) incidents() Section {
	s := Section{Title: "Incidents", Head: []string{"Workload", "From", "Lasted", "Worst performance"}}
	for i := range r.Incidents {
		x := &r.Incidents[i]
		lasted := Age(trimtab.SecondsOf(x.To.Sub(x.From)))
		if x.Ongoing {
			lasted += ", goes on"
		}
		s.Rows = append(s.Rows, []string{x.Workload, stamp(x.From), lasted, Performance(&x.Worst, x.Share)})
	}
	switch {
	case len(s.Rows) == 0:
		s.Text = []string{"No workload missed its SLO for a round or longer."}
	case r.Omitted > 0:
		s.Text = []string{fmt.Sprintf("And %d more, which were shorter.", r.Omitted)}
	}
	return s
}

// LeftText formats the rest of the budget: "62%", or [Missing].
func (b *Budget) LeftText() string {
	if b == nil {
		return Missing
	}
	if b.Left < 0 {
		return fmt.Sprintf("overdrawn by %s", Percent(-b.Left))
	}
	return Percent(b.Left)
}

// BurnText says how fast the budget is used: "0.4x (6 h), 2x (1 h), 14x (5 min)".
func (b *Budget) BurnText() string {
	if b == nil || len(b.Burn) == 0 {
		return Missing
	}
	out := ""
	for _, w := range [][2]string{{"6h", "6 h"}, {"1h", "1 h"}, {"5m", "5 min"}} {
		if rate, ok := b.Burn[w[0]]; ok {
			if out != "" {
				out += ", "
			}
			out += Number(rate) + "x (" + w[1] + ")"
		}
	}
	return out
}
