package services

import (
	"fmt"
	"testing"

	model "github.com/trimtab/trimtab/analyzer/learn/queue"
)

func TestCalib(t *testing.T) {
	for _, s := range three() {
		for _, share := range []float64{0.05, 0.1, 0.25, 0.4} {
			load := share * 0.66 / s.Cost
			s.Load = func(float64) float64 { return load }
			fmt.Printf("%s load %.1f use %.3f:", s.Name, load, load*s.Cost)
			for _, f := range []float64{1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3} {
				a := f * load * s.Cost
				q := newQueue(&s, 7)
				q.quota = a
				for k := range 600 * 200 {
					q.advance(float64(k)*step, k%steps)
				}
				in := 0.0
				for _, d := range q.done {
					if d.end-d.at <= s.Latency {
						in++
					}
				}
				fmt.Printf("  %.2f: %.2f/%.2f", a, in/float64(len(q.done)), model.InTime(a, load, s.Cost, s.Latency))
			}
			fmt.Println()
		}
	}
}
